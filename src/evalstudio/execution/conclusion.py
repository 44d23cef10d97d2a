"""What an execution came to: its numbers, its requirements held against them, and the head of its reports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Protocol, cast

from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput
from ..base.times import now
from ..evaluators.results import RunOutput
from ..project.entities import Execution, RunSummary, Subject, reasons_of
from ..reporting.early import EarlyDecisions
from ..reporting.evidence import Baseline, ExecutionEvidence, GroupedRuns, each_run, tagged_scenarios
from ..reporting.reports.executions import ExecutionSource, HeadBuilder
from ..reporting.reports.model import ReportHead
from ..reporting.requirements import EXIT_CODES, ExecutionConclusion, judge, overall, standing_of
from ..reporting.spending import exceeded, total_known, unseen
from ..reporting.statistics import ExecutionSummary, summarize
from ..storage.contract import Filters, Records, all_runs
from ..storage.errors import NotFound
from ..storage.store import SqlStore

if TYPE_CHECKING:
    from ..reporting.comparison import ComparisonResult


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The verdict on an execution, and what its reports are written from."""

    result: ExecutionConclusion
    source: ExecutionSource


async def conclude(records: Records, execution: Execution, *, detailed: bool = False) -> Conclusion:
    """Read an execution's runs once and judge it; with ``detailed`` also what reports show of each run."""
    early = await early_decisions(records, execution)
    evidence = ExecutionEvidence(
        execution.requirements,
        tags=early.tags,
        baselines=early.baselines,
        agent_errors_fail=execution.agent_errors_fail,
    )
    builder, groups = HeadBuilder(evidence), GroupedRuns()
    # Rounds are closed in the order they were queued in.
    details = detailed or evidence.needs_outputs or execution.until_decided is not None
    async for run, output in (
        each_run(records, execution.id, findings=False) if details else _without_outputs(records, execution)
    ):
        builder.add(run, output)
        groups.add(run)
        if execution.until_decided is not None:
            early.add(run, output)
    early.close_round()
    # Intervals of many subjects take a while, and a server has others to answer.
    head, result = await asyncio.to_thread(_judged, execution, builder, groups, early)
    return Conclusion(result, ExecutionSource(records, execution, head))


def _judged(
    execution: Execution, builder: HeadBuilder, groups: GroupedRuns, early: EarlyDecisions
) -> tuple[ReportHead, ExecutionConclusion]:
    evidence, repeated = builder.evidence, execution.until_decided is not None
    summary = summarize(groups, agent_errors_fail=evidence.agent_errors_fail)
    results = judge(early.for_the_end() if repeated else execution.requirements, evidence)
    results = early.settled(results) if repeated else results
    standing = overall(results) if execution.requirements else standing_of(summary.counts)
    head = builder.head(execution, summary, standing, results)
    head.notes[:0] = _budget_notes(execution, summary)
    head.notes += early.notes() if repeated else ()
    result = ExecutionConclusion(
        standing=standing,
        exit_code=EXIT_CODES[standing],
        requirements=results,
        summary=summary,
        notes=head.notes,
    )
    return head, result


async def early_decisions(records: Records, execution: Execution) -> EarlyDecisions:
    """An execution's requirements with all they are held against, before any of its runs."""
    requirements = execution.requirements
    names = dict.fromkeys(one.no_regression for one in requirements if one.no_regression)
    baselines = {name: await find_baseline(records, execution, name) for name in names}
    tags = await tagged_scenarios(records, requirements)
    most = execution.until_decided or 1
    return EarlyDecisions(requirements, most, tags, baselines, execution.agent_errors_fail)


def _budget_notes(execution: Execution, summary: ExecutionSummary) -> list[str]:
    """That a budget ended it, and what of it the budget could not see."""
    budget = execution.budget
    if budget is None:
        return []
    end = execution.completed_at or now()
    reached = exceeded(budget, *total_known(summary.usage), (end - execution.created_at).total_seconds())
    ended = "budget" in reasons_of(execution.partial) and reached
    return [f"Ended by its budget: {reached}"] * bool(ended) + unseen(budget, summary.usage)


async def _without_outputs(
    records: Records, execution: Execution
) -> AsyncIterator[tuple[RunSummary, RunOutput | None]]:
    """Summaries alone, which a server sends in pages."""
    async for run in all_runs(records, Filters(execution_id=execution.id)):
        yield run, None


class ComparesExecutions(Protocol):
    """A server that compares for us."""

    async def compare(self, base: str, candidate: str, **more: str | None) -> ComparisonResult: ...


async def find_baseline(records: Records, execution: Execution, name: str) -> Baseline | str:
    """The baseline of this name with its runs by subject; a text says why there is none.

    A subject whose question changed since is left out: a drop there would say nothing about the agent.
    """
    from ..reporting.comparison import is_chosen_part

    try:
        comparison = await _compared(records, execution, name)
    except (InvalidInput, NotFound) as error:
        return str(error)
    changed = {one.subject.key for one in comparison.subjects if one.category == "changed"}
    if len(changed) < comparison.counts.get("changed", 0):
        return f"more than {len(comparison.subjects):,} subjects differ from {name}; compare them first"
    base = comparison.base
    shown = f"{name} ({base.id})" if name != base.id else name
    shown += f" without {len(changed)} changed questions" if changed else ""
    # Where somebody chose what to run, and where another eval's execution is named, not all of it is.
    all_must_run = base.eval_id == execution.eval_id and not is_chosen_part(execution.partial)
    baseline = Baseline(shown, execution.agent_errors_fail, all_must_run)
    async for run in all_runs(records, Filters(execution_id=base.id)):
        if Subject.key_of(run) not in changed:
            baseline.add(run)
    return baseline


async def _compared(records: Records, execution: Execution, name: str) -> ComparisonResult:
    if isinstance(records, SqlStore):
        from .comparing import ComparisonRequest, compare_named

        return await compare_named(records, ComparisonRequest(name, execution.id, execution.eval_id))
    there = cast(ComparesExecutions, records)
    return await there.compare(name, execution.id, evalId=execution.eval_id)
