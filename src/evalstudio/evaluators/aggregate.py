"""From turn results to a verdict: gates, effective results, score, metrics and the turn decision.

Pure functions of their arguments. The turn loop feeds them; nothing here waits or stores.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, cast

from ..base.lazy_dataclass import dataclass
from .contract import Reduce, TurnFacts
from .criteria import CriterionScore, EvaluationCriteria, Score, on_scale, weigh
from .definition import Entry
from .results import ERROR_PREFIX, EndedBy, Finding, Outcome, Verdict
from .running import run_turn

Turns = Sequence[Sequence[Finding]]

ALL_PASSED = "All evaluators passed"
NOTHING_ASSERTED = "No assertion held or failed"


@dataclass(frozen=True, slots=True)
class StopConditions:
    """What could come after this turn, as far as the conversation knows."""

    script_left: bool = False
    blocked_by: Literal["script", "user", "limit", "recording"] | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the conversation is over after a turn, and what ended it."""

    over: bool
    ended_by: EndedBy | None = None


def due(entries: Sequence[Entry], turns: Turns) -> list[Entry]:
    """The entries to run after the next turn: no ``finally`` ones, no ``eventually`` that has held."""
    return [
        entry
        for entry in entries
        if entry.gate != "finally" and not (entry.gate == "eventually" and has_held(entry, turns))
    ]


def has_held(entry: Entry, turns: Turns) -> bool:
    """Whether every latch of an ``eventually`` assertion has held on some turn."""
    latches = _latches(entry, turns)
    return bool(latches) and all(any(turn.holds for turn in of) for of in latches.values())


def mark_pending(results: Iterable[Finding]) -> None:
    """An ``eventually`` assertion that has not held yet is pending, not failed."""
    for result in results:
        if result.kind == "assertion" and result.gate == "eventually" and result.failed:
            result.pending = not result.decisive


def decide(
    entries: Sequence[Entry], turns: Turns, stop_conditions: StopConditions, *, stop_on_failure: bool = True
) -> Decision:
    """The decision after a turn. ``turns`` holds the results of every turn so far."""
    last = turns[-1] if turns else ()
    if stop_on_failure and any(_breaks(result) for result in last):
        return Decision(True, "failure")
    if not stop_conditions.script_left:
        awaited = [e for e in entries if e.kind == "assertion" and e.gate == "eventually"]
        if awaited and all(has_held(entry, turns) for entry in awaited):
            return Decision(True, "success")
        if any(r.decisive and r.holds for results in turns for r in results if r.kind == "assertion"):
            return Decision(True, "success")
    if stop_conditions.blocked_by is not None:
        return Decision(True, stop_conditions.blocked_by)
    return Decision(False)


def _breaks(result: Finding) -> bool:
    return result.kind == "assertion" and result.failed and (result.gate == "always" or result.decisive)


def _awaited(result: Finding) -> bool:
    return result.gate == "eventually" and not result.decisive


def conclude(entries: Sequence[Entry], turns: Turns, criteria: Sequence[EvaluationCriteria] = ()) -> Verdict:
    """The verdict over a finished conversation; the last item of ``turns`` holds the final results."""
    effective_results: list[Finding] = []
    for entry in entries:
        if entry.kind == "assertion":
            effective_results += effective(entry, turns)
        elif (measured := _reduced(entry, turns)) is not None:
            effective_results.append(measured)
    return conclude_once(effective_results, criteria)


def conclude_once(findings: list[Finding], criteria: Sequence[EvaluationCriteria] = ()) -> Verdict:
    """The verdict over findings that all count as they stand: gates do not apply to a single turn."""
    if not (criteria or any(f.criterion_name is not None for f in findings)):
        return _with_findings(_verdict(findings), findings)
    declared = {criterion.name: criterion for criterion in criteria}
    scores = [criterion_score(f, declared) for f in findings]
    overall, means, coverage = weigh((score for score in scores if score is not None), criteria)
    if coverage.excluded or coverage.unknown:
        findings = list(map(_readable, findings, scores))
    coverage.errors = sum(1 for f in findings if f.error is not None)
    verdict = _with_findings(_verdict(findings), findings)
    verdict.overall_score, verdict.criterion_scores, verdict.coverage = overall, means, coverage
    if verdict.outcome in ("pass", "unasserted"):
        _check_scored(verdict, zip(findings, scores, strict=True), declared)
    return verdict


def _with_findings(verdict: Verdict, findings: list[Finding]) -> Verdict:
    verdict.evaluator_results = findings
    verdict.metrics = {
        f.name: f.value for f in findings if f.kind == "metric" and f.value is not None and not f.missing
    }
    return verdict


def _readable(finding: Finding, score: CriterionScore | None) -> Finding:
    """An assertion whose score cannot be read is an error; a metric stays the measurement it is."""
    if score is None or score.unreadable is None or finding.kind == "metric":
        return finding
    error = f"the score {finding.score!r} cannot be read: {score.unreadable}"
    reason = f"Evaluator error: {error}"
    return replace(finding, success=False, error=error, fault="evaluator", reason=reason, decisive=False)


def _check_scored(
    verdict: Verdict,
    scored: Iterable[tuple[Finding, CriterionScore | None]],
    declared: Mapping[str, EvaluationCriteria],
) -> None:
    """A criterion that a metric should have scored and could not makes the whole an error."""
    for finding, score in scored:
        if score is None or score.criterion_name not in declared:
            continue
        if why := score.unreadable or finding.error:
            verdict.outcome, verdict.fault, verdict.score = "error", "evaluator", None
            verdict.reason = f'{finding.label} could not score "{score.criterion_name}": {why}'
            return


def criterion_of(finding: Finding, declared: Mapping[str, EvaluationCriteria]) -> str | None:
    """The criterion a finding is about: the one it names, else the declared one its entry is named after."""
    return finding.criterion_name or (finding.name if finding.name in declared else None)


def criterion_score(finding: Finding, declared: Mapping[str, EvaluationCriteria]) -> CriterionScore | None:
    """What a finding says about its criterion, on that criterion's scale; nothing if it has none."""
    name = criterion_of(finding, declared)
    if name is None:
        return None
    score = finding.score if finding.error is not None else score_on_scale(finding, declared.get(name))
    unbounded = "unbounded" in finding.metadata and bool(finding.metadata["unbounded"])
    return CriterionScore(name, score, finding.error, finding.skipped, unbounded)


def score_on_scale(finding: Finding, criterion: EvaluationCriteria | None) -> Score | None:
    """The raw score of a finding: its own, else its value or verdict brought onto the criterion's scale."""
    if finding.error is not None or finding.skipped or finding.missing:
        return None
    if finding.score is not None:
        return finding.score
    if finding.value is None:
        return finding.success
    if criterion is None or finding.kind == "metric":
        return finding.value
    # Where the scale knows only yes and no, the evaluator's own verdict is the score.
    return on_scale(finding.value, criterion, threshold=0.0 if finding.success else math.inf)


def _verdict(findings: Sequence[Finding]) -> Verdict:
    outcome, reason, decisive, counted = outcome_of(findings)
    if outcome == "error":
        assert decisive is not None
        return Verdict(outcome=outcome, reason=reason, fault=decisive.fault)
    return Verdict(outcome=outcome, reason=reason, score=_score(counted))


def outcome_of(findings: Sequence[Finding]) -> tuple[Outcome, str, Finding | None, Sequence[Finding]]:
    """What findings come to: the outcome, its reason, the finding it rests on, and those that count."""
    counted = [f for f in findings if f.kind == "assertion" and not f.skipped]
    if not counted:
        return "unasserted", NOTHING_ASSERTED, None, counted
    failures = [r for r in counted if r.failed]
    if failures:
        # What had not held yet failed only when the conversation was over: what ended it comes first.
        first = min(failures, key=lambda r: math.inf if _awaited(r) else r.turn)
        return "fail", first.reason or f"{first.label} failed", first, counted
    errors = [r for r in counted if r.error is not None]
    if errors:
        first = min(errors, key=lambda r: r.turn)
        reason = f'Evaluator "{first.name}": {first.reason.removeprefix(ERROR_PREFIX)}'
        return "error", reason, first, counted
    return "pass", ALL_PASSED, None, counted


def _score(counted: Sequence[Finding]) -> float | None:
    values = [0.0 if r.value is None else r.value for r in counted if r.value is not None or r.failed]
    return min(values, default=None)


def effective(entry: Entry, turns: Turns) -> list[Finding]:
    """The results that count for an assertion: one per criterion, or one per rule where there are several."""
    own = _own(entry, turns)
    if not own:
        return [r for results in turns for r in results if r.name == entry.key][-1:]
    if entry.gate == "eventually":
        return [row for turns_of in _latches(entry, turns).values() for row in _counting(turns_of).shown()]
    rows: dict[tuple[str | None, int], list[Finding]] = {}
    for results in own:
        for name, rules in _by_criterion(results).items():
            for place, rule in enumerate(rules):
                rows.setdefault((name, place), []).append(rule)
    return [_effective(results) for results in rows.values()]


def _own(entry: Entry, turns: Turns) -> list[list[Finding]]:
    """What an entry found, turn by turn. That it was not asked on a turn says nothing about it."""
    key = entry.key
    return [own for results in turns if (own := [r for r in results if r.name == key and not r.not_asked])]


@dataclass(frozen=True, slots=True)
class _Latched:
    """What an entry found about one criterion on one turn; its rules are and-ed, a skip says nothing."""

    rules: list[Finding]

    @property
    def failed(self) -> bool:
        return any(rule.failed for rule in self.rules)

    @property
    def failed_for_good(self) -> bool:
        return any(rule.failed and rule.decisive for rule in self.rules)

    @property
    def errored(self) -> bool:
        return not self.failed and any(rule.error is not None for rule in self.rules)

    @property
    def holds(self) -> bool:
        return any(rule.holds for rule in self.rules) and not (self.failed or self.errored)

    def shown(self) -> list[Finding]:
        return [_over(rule) for rule in self.rules]


def _over(finding: Finding) -> Finding:
    """A finding when the conversation is over: nothing is pending any more."""
    return replace(finding, pending=False) if finding.pending else finding


def _counting(turns: Sequence[_Latched]) -> _Latched:
    """The turn that counts for an ``eventually``: all its rules must hold on one turn together."""
    decisive = [turn for turn in turns if turn.failed_for_good]
    holding = [turn for turn in turns if turn.holds]
    errors = [turn for turn in turns if turn.errored]
    failures = [turn for turn in turns if turn.failed]
    return (decisive or holding or errors[-1:] or failures[-1:] or turns[-1:])[0]


def _effective(results: Sequence[Finding]) -> Finding:
    counted = [result for result in results if not result.skipped]
    failures = [result for result in counted if result.failed]
    errors = [result for result in counted if result.error is not None]
    if failures or errors:
        return (failures or errors)[0]
    return _weakest(counted) if counted else results[-1]


def _weakest(holding: Sequence[Finding]) -> Finding:
    """The one with the smallest value; of budgets, which have none, the one that used the most of it."""
    spent = [(share, result) for result in holding if (share := result.budget_used) is not None]
    if spent:
        most = max(share for share, _ in spent)
        return [result for share, result in spent if share == most][-1]
    return min(holding, key=lambda result: math.inf if result.value is None else result.value)


def _latches(entry: Entry, turns: Turns) -> dict[str | None, list[_Latched]]:
    """The results of one entry by criterion name, one per turn."""
    latches: dict[str | None, list[_Latched]] = {}
    for results in _own(entry, turns):
        for name, rules in _by_criterion(results).items():
            latches.setdefault(name, []).append(_Latched(rules))
    return latches


def _by_criterion(results: Sequence[Finding]) -> dict[str | None, list[Finding]]:
    by_name: dict[str | None, list[Finding]] = {}
    for result in results:
        by_name.setdefault(result.criterion_name, []).append(result)
    return by_name


def _reduced(entry: Entry, turns: Turns) -> Finding | None:
    """A metric over the whole conversation, with a reason and metadata that fit its value."""
    findings = [result for results in turns for result in results if result.name == entry.key]
    if not findings:
        return None
    values: list[float] = []
    measured: list[Finding] = []
    for finding in findings:
        if finding.value is not None and not finding.missing:
            values.append(finding.value)
            measured.append(finding)
    if not measured:
        return findings[-1]
    value = _reduce(values, entry.reduce)
    if len(measured) == 1 or entry.reduce in ("last", "max"):
        return [finding for finding in measured if finding.value == value][-1]
    return replace(
        measured[-1],
        value=value,
        reason=_reduced_reason(entry, value, len(measured), len(findings)),
        metadata=_reduced_metadata([finding.metadata for finding in measured], entry.reduce),
    )


def _reduced_reason(entry: Entry, value: float, measured: int, of: int) -> str:
    unit = f" {entry.unit}" if entry.unit else ""
    how = "in all, over" if entry.reduce == "sum" else "on average, over"
    gaps = "" if measured == of else f" ({of - measured} of {of} not measured)"
    return f"{value:,.10g}{unit} {how} {measured} turns{gaps}"


def _reduced_metadata(several: Sequence[Mapping[str, Any]], how: Reduce) -> dict[str, Any]:
    """What still holds over all turns: numbers and lists of a sum added up, and what is the same on each."""
    reduced: dict[str, Any] = {}
    for key in several[0]:
        items = [metadata.get(key) for metadata in several]
        if how == "sum" and all(isinstance(i, int | float) and not isinstance(i, bool) for i in items):
            reduced[key] = sum(cast(list[float], items))
        elif how == "sum" and all(isinstance(item, list) for item in items):
            reduced[key] = [part for item in cast(list[list[Any]], items) for part in item]
        elif all(one == next_one for one, next_one in pairwise(items)):
            reduced[key] = items.pop()
    return reduced | {"reduce": how, "turns": len(several)}


def _reduce(values: Sequence[float], how: Reduce) -> float:
    match how:
        case "last":
            return values[-1]
        case "sum":
            return math.fsum(values)
        case "mean":
            return math.fsum(values) / len(values)
        case "max":
            return max(values)


async def run_evaluators(
    entries: Sequence[Entry], facts: TurnFacts, limit: asyncio.Semaphore | None = None
) -> Verdict:
    """Run entries once over one turn or record and say what it comes to; gates do not apply."""
    findings = await run_turn(entries, facts, models_after_failure=True, limit=limit)
    return conclude_once(findings, facts.criteria)
