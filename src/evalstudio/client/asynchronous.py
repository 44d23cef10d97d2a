"""``AsyncClient``: the API in the project's own entities, for async code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar
from uuid import uuid4

import orjson
from pydantic import BaseModel

from ..base.lazy_dataclass import dataclass
from ..base.outages import OutagePolicy
from ..conversation.definitions import Persona, Scenario
from ..project.entities import (
    AgentErrors,
    Baseline,
    Connector,
    Eval,
    Execution,
    Run,
    RunSummary,
    Stored,
    StoredConnector,
    StoredEval,
    StoredMonitor,
    StoredPersona,
    StoredScenario,
)
from ..project.monitors import Monitor
from ..reporting.comparison import ComparisonResult
from ..reporting.requirements import ExecutionConclusion
from ..version import __version__
from .answers import ServerError, ServerUnreachable, raise_refusal, read_limited
from .scoring import AsyncScorings

if TYPE_CHECKING:
    from aiohttp import ClientSession

Json = dict[str, Any]
Query = Mapping[str, str | int | Sequence[str] | None]

_PAGE = 200
_RETRY_SECONDS = 1.0
_STARTING = frozenset({502, 503, 504})
# How long an answer may take; judging conversations takes its time.
_ANSWERED, _JUDGED = 300.0, 6 * 3600.0


DefinitionT = TypeVar("DefinitionT", bound=BaseModel)
StoredT = TypeVar("StoredT", StoredPersona, StoredScenario, StoredConnector, StoredEval, StoredMonitor)


@dataclass(frozen=True, slots=True)
class AsyncDefinitions(Generic[DefinitionT, StoredT]):
    """The definitions of one kind on a server."""

    client: AsyncClient
    path: str
    model: type[DefinitionT]
    stored: type[StoredT]

    async def list(self, text: str | None = None) -> list[StoredT]:
        """All of them, or those with this text in their name."""
        items = self.client.pages(self.path, {"text": text})
        return [self.stored.model_validate(item) async for item in items]

    async def get(self, definition_id: str) -> StoredT:
        return self.stored.model_validate(await self.client.call("GET", f"{self.path}/{definition_id}"))

    async def create(self, definition: DefinitionT | Mapping[str, Any], *, key: str | None = None) -> StoredT:
        """Make one. The same ``key`` given again makes nothing new."""
        answer = await self.client.call("POST", self.path, body=self._body(definition), key=key)
        return self.stored.model_validate(answer)

    async def update(
        self, definition_id: str, definition: DefinitionT | Mapping[str, Any], *, version: int | None = None
    ) -> StoredT:
        """Replace one; with ``version`` only if it is still that version."""
        body, path = self._body(definition), f"{self.path}/{definition_id}"
        answer = await self.client.call("PUT", path, body=body, if_match=_etag(version))
        return self.stored.model_validate(answer)

    async def delete(self, definition_id: str, *, version: int | None = None) -> None:
        """Delete one; with ``version`` only if it is still that version."""
        await self.client.call("DELETE", f"{self.path}/{definition_id}", if_match=_etag(version))

    def _body(self, definition: DefinitionT | Mapping[str, Any]) -> Json:
        is_model = isinstance(definition, BaseModel)
        model = definition if is_model else self.model.model_validate(dict(definition))
        return model.model_dump(mode="json", by_alias=True, exclude=set(Stored.model_fields))


def _etag(version: int | None) -> str | None:
    return None if version is None else f'"v{version}"'


class AsyncClient:
    """Talks to one server. Use it with ``async with``, or close it."""

    def __init__(self, url: str = "http://127.0.0.1:3000", token: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._outages = OutagePolicy("server")
        self._http: ClientSession | None = None
        self.personas = AsyncDefinitions(self, "/api/personas", Persona, StoredPersona)
        self.scenarios = AsyncDefinitions(self, "/api/scenarios", Scenario, StoredScenario)
        self.connectors = AsyncDefinitions(self, "/api/connectors", Connector, StoredConnector)
        self.evals = AsyncDefinitions(self, "/api/evals", Eval, StoredEval)
        self.monitors = AsyncDefinitions(self, "/api/monitors", Monitor, StoredMonitor)
        self.scorings = AsyncScorings(self.call)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()
            self._http = None

    async def status(self) -> Json:
        """The project and its server."""
        return await self.call("GET", "/api/status")

    async def evaluator_types(self) -> list[Json]:
        return await self.call("GET", "/api/evaluator-types")

    async def connector_types(self) -> list[Json]:
        return await self.call("GET", "/api/connectors/types")

    async def test_connector(self, connector_id: str) -> Json:
        """Whether the agent is there and answers: ``success``, ``latencyMs``, ``response``, ``error``."""
        return await self.call("POST", f"/api/connectors/{connector_id}/test")

    async def start(
        self,
        eval_id: str,
        *,
        repetitions: int | None = None,
        until_decided: bool = False,
        labels: Mapping[str, Any] | None = None,
        key: str | None = None,
        **more: Any,
    ) -> Execution:
        """Start an eval, or the part of it that ``scenarioIds``, ``connectorIds`` or ``lastFailed`` name.

        ``requirements`` are required beside the eval's own, ``budget`` holds instead of its own. With
        ``until_decided`` only what is still open is repeated, at most ``repetitions`` times.
        The same ``key`` given again starts nothing new.
        """
        body = {
            "evalId": eval_id,
            "repetitions": repetitions,
            "untilDecided": until_decided,
            "labels": dict(labels or {}),
            **more,
        }
        answer = await self.call("POST", "/api/executions", body=body, key=key)
        return Execution.model_validate(answer)

    async def execution(self, execution_id: str) -> Execution:
        return Execution.model_validate(await self.call("GET", f"/api/executions/{execution_id}"))

    async def conclusion(
        self, execution_id: str, *, agent_errors: AgentErrors | None = None
    ) -> ExecutionConclusion:
        """Whether an execution reached what is required, with the evidence and an exit code.

        ``agent_errors`` counts the agent's errors otherwise than the execution was started with.
        """
        query = {"agentErrors": agent_errors}
        answer = await self.call("GET", f"/api/executions/{execution_id}/conclusion", query=query)
        return ExecutionConclusion.model_validate(answer)

    async def executions(self, **filters: str | int | Sequence[str] | None) -> list[Execution]:
        """The newest executions, narrowed as the API allows: ``evalId``, ``label``, ``limit``, …"""
        page = await self.call("GET", "/api/executions", query=filters)
        return [Execution.model_validate(item) for item in page["items"]]

    async def compare(
        self, base: str, candidate: str = "last", **more: str | float | None
    ) -> ComparisonResult:
        """Whether the candidate is better or worse: ids, ``last``, names of baselines, or results files.

        More: ``evalId``, ``alpha``, ``minEffect``, ``allowGone``, and ``baseConnector`` with
        ``candidateConnector``.
        """
        rest = {name: None if value is None else str(value) for name, value in more.items()}
        query = {"base": base, "candidate": candidate, **rest}
        return ComparisonResult.model_validate(await self.call("GET", "/api/compare", query=query))

    async def baselines(self, eval_id: str | None = None) -> list[Baseline]:
        answer = await self.call("GET", "/api/baselines", query={"evalId": eval_id})
        return [Baseline.model_validate(item) for item in answer]

    async def set_baseline(
        self, name: str, execution: str | None = None, *, eval_id: str | None = None
    ) -> Baseline:
        """Make an execution the baseline of this name; the last whole one if none is given."""
        body = {"name": name, "execution": execution, "evalId": eval_id}
        return Baseline.model_validate(await self.call("PUT", "/api/baselines", body=body))

    async def remove_baseline(self, name: str, *, eval_id: str | None = None) -> None:
        await self.call("DELETE", "/api/baselines", query={"name": name, "evalId": eval_id})

    async def cancel(self, execution_id: str) -> int:
        """Cancel what is still queued or running; says how many runs that were."""
        return (await self.call("POST", f"/api/executions/{execution_id}/cancel"))["count"]

    async def retry(self, execution_id: str) -> int:
        """Queue the errored runs of an execution again; says how many."""
        return (await self.call("POST", f"/api/executions/{execution_id}/retry"))["count"]

    async def try_scenario(self, scenario_id: str, connector_id: str, **more: Any) -> list[RunSummary]:
        """Run one scenario against one connector once."""
        body = {"scenarioId": scenario_id, "connectorId": connector_id, **more}
        answer = await self.call("POST", "/api/runs", body=body)
        return [RunSummary.model_validate(item) for item in answer["runs"]]

    async def runs(self, **filters: str | int | None) -> list[RunSummary]:
        """Every run that fits: ``executionId``, ``status``, ``outcome``, ``scenarioId``, …"""
        return [RunSummary.model_validate(item) async for item in self.pages("/api/runs", filters)]

    async def run(self, run_id: str, *, attempt: int | None = None) -> Run:
        """A run with all that was said and its whole output."""
        answer = await self.call("GET", f"/api/runs/{run_id}", query={"attempt": attempt})
        return Run.model_validate(answer)

    async def score(self, record: Mapping[str, Any], config: Mapping[str, Any]) -> Json:
        """Score one recorded response."""
        return await self.call("POST", "/api/evaluations", body={"input": record, "config": config})

    async def review(self, conversations: Sequence[Any] = (), **more: Any) -> Execution:
        """Judge recorded conversations, or a ``file`` of them there, by ``evalId`` or ``scenarioId``.

        It goes on after the answer; ``wait`` waits for its end.
        """
        return await self._review(None, {"conversations": list(conversations) or None, **more})

    async def begin_review(self, *, key: str | None = None, **more: Any) -> Execution:
        """An execution for recorded conversations, which ``review_more`` sends; the same key begins one."""
        return await self._review(key, {"unfinished": True, **more})

    async def _review(self, key: str | None, body: Json) -> Execution:
        return Execution.model_validate(await self.call("POST", "/api/reviews", body=body, key=key))

    async def review_more(self, execution_id: str, conversations: Sequence[Any] = (), **more: Any) -> Json:
        """Judge these for a review that was begun; ``isLast`` finishes it. Answered when they are judged.

        Sent again they are not judged again, so a lost answer is asked for again.
        """
        body, path = {"conversations": list(conversations), **more}, f"/api/executions/{execution_id}"
        return await self.call("POST", f"{path}/conversations", body=body, key=uuid4().hex, seconds=_JUDGED)

    async def rescore(self, execution_id: str, *, key: str | None = None, **more: Any) -> Execution:
        """Score the conversations of an execution again; by ``scenarioId`` or ``evaluators``, if given."""
        answer = await self.call("POST", f"/api/executions/{execution_id}/rescore", body=more, key=key)
        return Execution.model_validate(answer)

    async def draft_scenario(self, run_id: str) -> Scenario:
        """A scenario drafted from what was said in a run; nothing is stored."""
        return Scenario.model_validate(await self.call("POST", f"/api/runs/{run_id}/scenario"))

    async def wait(self, execution_id: str, *, timeout: float | None = None) -> Execution:
        """Wait until an execution is over."""
        async with asyncio.timeout(timeout):
            async with aclosing(self.events(execution_id=execution_id, after=0)) as events:
                async for event in events:
                    if event["kind"] in ("execution.completed", "execution.cancelled"):
                        execution = await self.execution(execution_id)
                        if execution.is_over and not execution.is_unfinished:
                            return execution
        raise AssertionError("a stream of events never ends")

    async def events(
        self, *, execution_id: str | None = None, run_id: str | None = None, after: int | None = None
    ) -> AsyncGenerator[Json]:
        """What happens, as it happens. A lost connection is taken up where it broke off."""
        from aiohttp import ClientError, ClientTimeout

        query = {"executionId": execution_id, "runId": run_id, "after": after}
        timeout = ClientTimeout(total=None, sock_read=60)
        while True:
            try:
                async with self._request("GET", "/api/events", query=query, timeout=timeout) as response:
                    await raise_refusal(response)
                    async for line in response.content:
                        if line.startswith(b"data: "):
                            event: Json = orjson.loads(line[6:])
                            query["after"] = event["id"]
                            yield event
            except (ClientError, TimeoutError):
                await asyncio.sleep(_RETRY_SECONDS)

    async def pages(self, path: str, filters: Query) -> AsyncIterator[Json]:
        """Every item of a list."""
        query: dict[str, str | int | Sequence[str] | None] = {"limit": _PAGE, **filters}
        while True:
            page = await self.call("GET", path, query=query)
            for item in page["items"]:
                yield item
            if page["cursor"] is None:
                return
            query["cursor"] = page["cursor"]

    async def call(
        self,
        method: Literal["GET", "POST", "PUT", "DELETE"],
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        key: str | None = None,
        if_match: str | None = None,
        seconds: float = _ANSWERED,
    ) -> Any:
        """Any operation of the API; its JSON.

        Within ``riding_out`` a server that is away is waited for; what would be done twice is not repeated.
        """
        from aiohttp import ClientTimeout

        headers = {"Idempotency-Key": key, "If-Match": if_match}

        async def attempt(again: bool) -> Any:
            if again and method != "GET" and key is None and if_match is None:
                raise ServerError(0, "unknown_outcome", "The connection was lost; it may have been done.")
            limit = ClientTimeout(total=seconds)
            return await self._attempt(method, path, query=query, body=body, headers=headers, timeout=limit)

        return await self._outages.persist(attempt)

    async def _attempt(self, method: str, path: str, **request: Any) -> Any:
        from aiohttp import ClientConnectorError, ClientError

        try:
            async with self._request(method, path, **request) as response:
                if response.status in _STARTING:
                    raise ServerUnreachable(self.url, f"it answers {response.status}")
                await raise_refusal(response)
                content = await read_limited(response)
                return orjson.loads(content) if content else None
        except (ClientError, TimeoutError) as error:
            failure = ServerUnreachable(self.url, str(error) or "no answer in time")
            failure.may_have_happened = not isinstance(error, ClientConnectorError)
            raise failure from None

    def _request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        headers: Mapping[str, str | None] | None = None,
        **more: Any,
    ) -> Any:
        sent = {name: value for name, value in (headers or {}).items() if value is not None}
        if body is not None:
            more["data"] = orjson.dumps(body)
            sent["Content-Type"] = "application/json"
        params = [
            (name, str(one))
            for name, value in (query or {}).items()
            if value is not None
            for one in ([value] if isinstance(value, str | int) else value)
        ]
        return self._session().request(
            method, self.url + path, params=params, headers=sent, allow_redirects=False, **more
        )

    def _session(self) -> ClientSession:
        if self._http is None or self._http.closed:
            from aiohttp import ClientSession, DummyCookieJar

            headers = {"User-Agent": f"evalstudio/{__version__}"}
            if self._token is not None:
                headers["Authorization"] = f"Bearer {self._token}"
            self._http = ClientSession(headers=headers, cookie_jar=DummyCookieJar())
        return self._http
