"""What evaluators said over the newest executions: read run by run, in bounded pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..base.lazy_dataclass import dataclass
from ..conversation.definitions import EvaluatorUse
from ..project.entities import Execution, StoredScenario, Subject
from ..reporting.histories import EvaluatorHistory, EvaluatorResults, EvaluatorUsage
from ..reporting.run_figures import EvaluatorsFigures, EvaluatorTable
from ..storage.comparing import StoredResult
from ..storage.contract import Filters

if TYPE_CHECKING:
    from ..storage.store import SqlStore

MOST_EXECUTIONS = 30
MOST_RUNS = 3_000
_PAGE = 500


async def evaluator_history(store: SqlStore, type_name: str) -> EvaluatorHistory:
    """Its results in the newest executions that are over, as far as they are within the bounds."""
    results, reading = EvaluatorResults(type_name), _Reading(store, Filters(status="completed"))
    async for execution, items in reading.executions():
        results.add_execution(execution, _findings(items))
    return EvaluatorHistory(
        kind=results.kind,
        rate=results.rate,
        points=sorted(results.points, key=lambda point: point.execution_id),
        failures=results.failures,
        uses=await _uses(store, type_name),
        runs_read=reading.runs,
        more_runs=reading.more,
    )


async def evaluators_figures(store: SqlStore, filters: Filters) -> EvaluatorsFigures:
    """Every evaluator over the newest executions that fit, within the same bounds."""
    table, reading = EvaluatorTable(), _Reading(store, filters)
    async for execution, items in reading.executions():
        for _, subject, findings in _findings(items):
            table.add(execution.id, subject, findings)
    return EvaluatorsFigures(evaluators=table.rows(), runs_read=reading.runs, more_runs=reading.more)


@dataclass(slots=True)
class _Reading:
    """The results of the newest executions that fit; how many runs that were, and whether there are more."""

    store: SqlStore
    filters: Filters
    runs: int = 0
    more: bool = False

    async def executions(self) -> AsyncIterator[tuple[Execution, list[StoredResult]]]:
        for execution in await self._newest():
            if self.runs and self.runs + execution.counts.total > MOST_RUNS:
                self.more = True
                return
            items = await self._results(execution.id)
            self.runs += len(items)
            yield execution, items

    async def _newest(self) -> Sequence[Execution]:
        if self.filters.execution_id is not None:
            return [await self.store.execution(self.filters.execution_id)]
        return (await self.store.executions(self.filters, limit=MOST_EXECUTIONS)).items

    async def _results(self, execution_id: str) -> list[StoredResult]:
        page = await self.store.results_of(execution_id, limit=_PAGE)
        items, cursor = list(page.items), page.cursor
        while cursor is not None and len(items) < MOST_RUNS:
            page = await self.store.results_of(execution_id, cursor=cursor, limit=_PAGE)
            items, cursor = items + page.items, page.cursor
        self.more = self.more or cursor is not None
        return items


def _findings(results: Sequence[StoredResult]) -> Iterator[tuple[str, Subject, Sequence[Mapping[str, Any]]]]:
    for result in results:
        names: dict[str, Any] = dict(zip(Subject.model_fields, result.names, strict=True))
        yield result.id, Subject.model_construct(**names), result.output.get("evaluatorResults") or ()


async def _uses(store: SqlStore, type_name: str) -> list[EvaluatorUsage]:
    uses: list[EvaluatorUsage] = []
    cursor: str | None = None
    while True:
        page = await store.list_of("scenario", cursor=cursor, limit=500)
        for scenario in page.items:
            assert isinstance(scenario, StoredScenario)
            times = sum(
                isinstance(use, EvaluatorUse) and use.type == type_name for use in scenario.evaluators
            )
            if type_name == "llm-judge":
                times += bool(scenario.success_criteria or scenario.failure_criteria)
            if times:
                uses.append(EvaluatorUsage(scenario_id=scenario.id, scenario_name=scenario.name, times=times))
        cursor = page.cursor
        if cursor is None:
            return sorted(uses, key=lambda one: one.scenario_name)
