"""What one type of evaluator said over the newest executions: read run by run, in bounded pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..conversation.definitions import EvaluatorUse
from ..project.entities import StoredScenario, Subject
from ..reporting.histories import EvaluatorHistory, EvaluatorResults, EvaluatorUsage
from ..storage.comparing import StoredResult
from ..storage.contract import Filters

if TYPE_CHECKING:
    from ..storage.store import SqlStore

MOST_EXECUTIONS = 30
MOST_RUNS = 3_000
_PAGE = 500


async def evaluator_history(store: SqlStore, type_name: str) -> EvaluatorHistory:
    """Its results in the newest executions that are over, as far as they are within the bounds."""
    executions = (await store.executions(Filters(status="completed"), limit=MOST_EXECUTIONS)).items
    results, read, more = EvaluatorResults(type_name), 0, False
    for execution in executions:
        if read + execution.counts.total > MOST_RUNS and read:
            more = True
            break
        page = await store.results_of(execution.id, limit=_PAGE)
        items, cursor = page.items, page.cursor
        while cursor is not None and len(items) < MOST_RUNS:
            page = await store.results_of(execution.id, cursor=cursor, limit=_PAGE)
            items, cursor = items + page.items, page.cursor
        more = more or cursor is not None
        read += len(items)
        results.add_execution(execution, _findings(items))
    return EvaluatorHistory(
        kind=results.kind,
        rate=results.rate,
        points=sorted(results.points, key=lambda point: point.execution_id),
        failures=results.failures,
        uses=await _uses(store, type_name),
        runs_read=read,
        more_runs=more,
    )


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
