"""``Client``: the same for plain code, on a loop of its own in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from .asynchronous import AsyncClient, AsyncDefinitions, DefinitionT, Json, StoredT
from .scoring import AsyncScorings

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(method: Callable[Concatenate[Any, P], Awaitable[T]]) -> Callable[Concatenate[Any, P], T]:
    """The same method for plain code."""

    def call(self: Any, *args: P.args, **more: P.kwargs) -> T:
        return self.run_blocking(method(self.asynchronous, *args, **more))

    call.__doc__ = method.__doc__
    return call


class Definitions(Generic[DefinitionT, StoredT]):
    """The definitions of one kind on a server, for plain code."""

    def __init__(self, client: Client, asynchronous: AsyncDefinitions[DefinitionT, StoredT]) -> None:
        self.asynchronous = asynchronous
        self.run_blocking = client.run_blocking

    list = _blocking(AsyncDefinitions[DefinitionT, StoredT].list)
    get = _blocking(AsyncDefinitions[DefinitionT, StoredT].get)
    create = _blocking(AsyncDefinitions[DefinitionT, StoredT].create)
    update = _blocking(AsyncDefinitions[DefinitionT, StoredT].update)
    delete = _blocking(AsyncDefinitions[DefinitionT, StoredT].delete)


class Scorings:
    """The scorings of a server, for plain code."""

    def __init__(self, client: Client, asynchronous: AsyncScorings) -> None:
        self.asynchronous = asynchronous
        self.run_blocking = client.run_blocking

    sources = _blocking(AsyncScorings.sources)
    plan = _blocking(AsyncScorings.plan)
    check_plan = _blocking(AsyncScorings.check_plan)
    start = _blocking(AsyncScorings.start)
    list = _blocking(AsyncScorings.list)
    get = _blocking(AsyncScorings.get)
    wait = _blocking(AsyncScorings.wait)
    cancel = _blocking(AsyncScorings.cancel)
    delete = _blocking(AsyncScorings.delete)
    files = _blocking(AsyncScorings.files)
    results = _blocking(AsyncScorings.results)


class Client:
    """Talks to one server from plain code. Use it with ``with``, or close it."""

    def __init__(self, url: str = "http://127.0.0.1:3000", token: str | None = None) -> None:
        self.asynchronous = AsyncClient(url, token)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="evalstudio-client", daemon=True)
        self._thread.start()
        self.personas = Definitions(self, self.asynchronous.personas)
        self.scenarios = Definitions(self, self.asynchronous.scenarios)
        self.connectors = Definitions(self, self.asynchronous.connectors)
        self.evals = Definitions(self, self.asynchronous.evals)
        self.monitors = Definitions(self, self.asynchronous.monitors)
        self.scorings = Scorings(self, self.asynchronous.scorings)

    status = _blocking(AsyncClient.status)
    evaluator_types = _blocking(AsyncClient.evaluator_types)
    connector_types = _blocking(AsyncClient.connector_types)
    test_connector = _blocking(AsyncClient.test_connector)
    start = _blocking(AsyncClient.start)
    execution = _blocking(AsyncClient.execution)
    conclusion = _blocking(AsyncClient.conclusion)
    executions = _blocking(AsyncClient.executions)
    compare = _blocking(AsyncClient.compare)
    baselines = _blocking(AsyncClient.baselines)
    set_baseline = _blocking(AsyncClient.set_baseline)
    remove_baseline = _blocking(AsyncClient.remove_baseline)
    cancel = _blocking(AsyncClient.cancel)
    retry = _blocking(AsyncClient.retry)
    try_scenario = _blocking(AsyncClient.try_scenario)
    runs = _blocking(AsyncClient.runs)
    run = _blocking(AsyncClient.run)
    score = _blocking(AsyncClient.score)
    review = _blocking(AsyncClient.review)
    begin_review = _blocking(AsyncClient.begin_review)
    review_more = _blocking(AsyncClient.review_more)
    rescore = _blocking(AsyncClient.rescore)
    draft_scenario = _blocking(AsyncClient.draft_scenario)
    wait = _blocking(AsyncClient.wait)
    call = _blocking(AsyncClient.call)

    def events(
        self, *, execution_id: str | None = None, run_id: str | None = None, after: int | None = None
    ) -> Iterator[Json]:
        """What happens, as it happens."""
        events = self.asynchronous.events(execution_id=execution_id, run_id=run_id, after=after)
        try:
            while True:
                yield self.run_blocking(anext(events))
        finally:
            # Whoever stops listening closes the connection.
            if not self._loop.is_closed():
                self.run_blocking(events.aclose())

    def run_blocking(self, work: Awaitable[T]) -> T:
        async def finish() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(finish(), self._loop).result()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self.run_blocking(self.asynchronous.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
