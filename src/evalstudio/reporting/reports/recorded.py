"""The report of the results of ``score``, read line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from ...base.lazy_dataclass import dataclass
from ...base.problems import InvalidInput
from ...base.text import counted, were
from ...project.entities import Counts
from ...scoring.result_lines import BadResult
from ...scoring.stored_results import ResultsPlace, each_result, note_at
from ...scoring.summary import DatasetSummary
from ..recorded import group_rates, means_of, pass_rate, spending_of_records
from ..requirements import RequirementResult, Standing, standing_of
from .model import Measure, ReportFinding, ReportHead, ReportRun, SubjectLine, Transcript

_MOST_LISTED = 1_000
_ENDINGS = {"budget": "ended by its budget", "unfinished": "not scored to its end; go on with --resume"}


def read_results(place: ResultsPlace) -> Iterator[dict[str, Any]]:
    """The results at a place, each line checked to be one."""
    try:
        for _, result in each_result(place):
            yield result
    except BadResult as error:
        where = f"{place}{error.file}:{error.number}"
        raise InvalidInput.at(where, f"is no result of evalstudio score ({error.reason})") from None


def recorded_head(
    place: ResultsPlace,
    summary: DatasetSummary,
    requirements: list[RequirementResult] | None = None,
    standing: Standing | None = None,
    more_notes: Sequence[str] = (),
) -> ReportHead:
    """The head of some results; the summary may be known already, with what they do not hold."""
    outcomes = summary.outcomes
    counts = Counts(
        total=summary.records,
        passed=outcomes["pass"],
        failed=outcomes["fail"],
        errored=outcomes["error"],
        unasserted=outcomes["unasserted"],
    )
    notes = [*more_notes]
    if summary.duplicates.count:
        examples = ", ".join(summary.duplicates.examples)
        notes.append(
            f"{counted(summary.duplicates.count, 'record')} with the id of an earlier one: {examples}"
        )
    if partial := note_at(place).get("partial"):
        notes.append(f"Not all records: {_ENDINGS.get(partial, partial)}")
        standing = standing or "undecided"
    notes += (
        [f"{counted(summary.bad, 'unreadable record')} {were(summary.bad)} left out"] if summary.bad else []
    )
    return ReportHead(
        title=place.name,
        noun="records",
        standing=standing or standing_of(counts),
        counts=counts,
        rate=pass_rate(outcomes),
        rates=group_rates(summary),
        facts=[("results", str(place))],
        subjects=list(_bad_records(place)),
        requirements=requirements or [],
        usage=spending_of_records(summary),
        measures=[Measure(name, number, mean) for name, number, mean in means_of(summary)],
        notes=notes,
    )


def _bad_records(place: ResultsPlace) -> Iterator[SubjectLine]:
    listed = 0
    for result in read_results(place):
        if result["outcome"] not in ("fail", "error"):
            continue
        failed = int(result["outcome"] == "fail")
        label = f"{result['recordId']} (line {result['line']})"
        reason = str(result.get("reason") or "")
        yield SubjectLine(label, _group(result), failed=failed, errored=1 - failed, reason=reason)
        listed += 1
        if listed == _MOST_LISTED:
            return


def _group(result: Mapping[str, Any]) -> str:
    return str(result.get("group") or result.get("agentId") or "records")


@dataclass(slots=True)
class RecordedSource:
    """Some results; the dataset with what was said is not read again."""

    place: ResultsPlace
    head: ReportHead

    async def runs(self) -> AsyncIterator[ReportRun]:
        for result in read_results(self.place):
            yield _run(result)

    async def transcript(self, run: ReportRun) -> Transcript:
        return [("", f"What was said is in the dataset: {run.case}")]


def recorded_source(place: ResultsPlace) -> RecordedSource:
    summary = DatasetSummary()
    for result in read_results(place):
        summary.add(result)
        summary.duplicates.add(str(result["recordId"]), result["line"])
    if not summary.records:
        raise InvalidInput.at(str(place), "holds no results")
    return RecordedSource(place, recorded_head(place, summary))


def _run(result: Mapping[str, Any]) -> ReportRun:
    snapshot: Mapping[str, Any] = result.get("inputSnapshot") or {}
    return ReportRun(
        id=str(result["recordId"]),
        label=f"{result['recordId']} (line {result['line']})",
        group=_group(result),
        outcome=result["outcome"],
        case=f"{snapshot.get('dataset', '')}:{result['line']}",
        reason=str(result.get("reason") or ""),
        score=result.get("overallScore"),
        metrics={**result.get("metrics", {}), **result.get("criterionScores", {})},
        findings=[
            ReportFinding(one["name"], one["outcome"], str(one.get("reason") or ""))
            for one in result.get("evaluatorResults", ())
            if one.get("outcome") in ("fail", "error")
        ],
    )
