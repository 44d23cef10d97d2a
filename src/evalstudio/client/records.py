"""A server's lists in the words of a store: what commands read of a project elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, TypeVar

from ..evaluators.results import RunOutput
from ..project.documents import AnyStored, DefinitionKind, read_stored
from ..project.entities import Execution, Run, RunSummary
from ..reporting.comparison import ComparisonResult
from ..storage.contract import Filters, Page
from .answers import ServerError
from .asynchronous import AsyncClient

E = TypeVar("E")

_LARGEST_PAGE = 500
_NONE = Filters()


class RemoteRecords:
    """The definitions, executions and runs of a server."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list_of(
        self, kind: DefinitionKind, filters: Filters = _NONE, *, cursor: str | None = None, limit: int = 50
    ) -> Page[AnyStored]:
        return await self._page(f"/api/{kind}s", partial(read_stored, kind), filters, cursor, limit)

    async def execution(self, execution_id: str) -> Execution:
        return await self._client.execution(execution_id)

    async def executions(
        self, filters: Filters = _NONE, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Execution]:
        return await self._page("/api/executions", Execution.model_validate, filters, cursor, limit)

    async def compare(self, base: str, candidate: str, **more: str | None) -> ComparisonResult:
        return await self._client.compare(base, candidate, **more)

    async def run(self, run_id: str, *, attempt: int | None = None) -> Run:
        return await self._client.run(run_id, attempt=attempt)

    async def runs(
        self, filters: Filters = _NONE, *, cursor: str | None = None, limit: int = 50
    ) -> Page[RunSummary]:
        return await self._page("/api/runs", RunSummary.model_validate, filters, cursor, limit)

    async def runs_with_outputs(
        self, execution_id: str, *, after: str = "", limit: int = 200, findings: bool = True
    ) -> list[tuple[RunSummary, RunOutput | None]]:
        """All after this one, the oldest first: the server lists the newest first, in pages of its own."""
        filters, cursor = Filters(execution_id=execution_id), None
        runs: list[RunSummary] = []
        while True:
            page = await self.runs(filters, cursor=cursor, limit=_LARGEST_PAGE)
            runs += [run for run in page.items if run.id > after]
            cursor = page.cursor
            if cursor is None or page.items[-1].id <= after:
                break
        return [(run, (await self.run(run.id)).output) for run in reversed(runs)]

    async def cancel(self, *, execution_id: str | None = None, run_ids: Sequence[str] | None = None) -> int:
        return await self._affected("cancel", execution_id, run_ids)

    async def retry(self, *, execution_id: str | None = None, run_ids: Sequence[str] | None = None) -> int:
        return await self._affected("retry", execution_id, run_ids)

    async def delete_execution(self, execution_id: str) -> int:
        count = (await self.execution(execution_id)).counts.total
        await self._client.call("DELETE", f"/api/executions/{execution_id}")
        return count

    async def delete_runs(self, run_ids: Sequence[str]) -> int:
        return sum([await self._did("DELETE", f"/api/runs/{one}") for one in run_ids])

    async def _affected(self, verb: str, execution_id: str | None, run_ids: Sequence[str] | None) -> int:
        if execution_id is not None:
            return (await self._client.call("POST", f"/api/executions/{execution_id}/{verb}"))["count"]
        return sum([await self._did("POST", f"/api/runs/{one}/{verb}") for one in run_ids or ()])

    async def _did(self, method: Any, path: str) -> bool:
        """Whether it could be done to this run; one in another state is left as it is."""
        try:
            await self._client.call(method, path)
        except ServerError as error:
            if error.status != 409:
                raise
            return False
        return True

    async def _page(
        self, path: str, read: Callable[[Any], E], filters: Filters, cursor: str | None, limit: int
    ) -> Page[E]:
        """As many as ``limit`` says, in as many requests as the server needs for them."""
        items: list[E] = []
        while True:
            query = {**_query(filters), "cursor": cursor, "limit": min(limit - len(items), _LARGEST_PAGE)}
            page = await self._client.call("GET", path, query=query)
            items += [read(item) for item in page["items"]]
            cursor = page["cursor"]
            if cursor is None or len(items) >= limit:
                return Page(items, cursor)


def _query(filters: Filters) -> Mapping[str, str | list[str]]:
    """The filters that are set, as the API spells them."""
    query: dict[str, str | list[str]] = {}
    for field in fields(filters):
        value = getattr(filters, field.name)
        if isinstance(value, str):
            first, *rest = field.name.split("_")
            query[first + "".join(part.title() for part in rest)] = value
    if filters.labels:
        query["label"] = list(filters.labels)
    if filters.whole:
        query["whole"] = "true"
    return query
