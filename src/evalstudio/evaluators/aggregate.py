"""From turn results to a verdict: gates, effective results, score, metrics and the turn decision.

Pure functions of their arguments. The turn loop feeds them; nothing here waits or stores.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from .contract import Gate, Reduce, TurnFacts
from .criteria import CriterionScore, EvaluationCriteria, Score, on_scale, weigh
from .definition import Entry
from .results import ERROR_PREFIX, EndedBy, Finding, Verdict
from .running import run_turn

Turns = Sequence[Sequence[Finding]]

ALL_PASSED = "All evaluators passed"
NO_ASSERTIONS = "No assertions"


@dataclass(frozen=True, slots=True)
class StopConditions:
    """What could come after this turn, as far as the conversation knows."""

    script_left: bool = False
    blocked_by: Literal["script", "user", "limit"] | None = None


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
    return bool(latches) and all(any(r.holds for r in results) for results in latches.values())


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
    verdict = _verdict([f for f in findings if f.kind == "assertion" and not f.skipped])
    verdict.evaluator_results = findings
    verdict.metrics = {
        f.name: f.value for f in findings if f.kind == "metric" and f.value is not None and not f.missing
    }
    if criteria or any(f.criterion_name is not None for f in findings):
        declared = {criterion.name: criterion for criterion in criteria}
        scores = [score for f in findings if (score := criterion_score(f, declared)) is not None]
        verdict.overall_score, verdict.criterion_scores, verdict.coverage = weigh(scores, criteria)
        verdict.coverage.errors = sum(1 for f in findings if f.error is not None)
    return verdict


def criterion_of(finding: Finding, declared: Mapping[str, EvaluationCriteria]) -> str | None:
    """The criterion a finding is about: the one it names, else the declared one its entry is named after."""
    return finding.criterion_name or (finding.name if finding.name in declared else None)


def criterion_score(finding: Finding, declared: Mapping[str, EvaluationCriteria]) -> CriterionScore | None:
    """What a finding says about its criterion, on that criterion's scale; nothing if it has none."""
    name = criterion_of(finding, declared)
    if name is None:
        return None
    score = score_on_scale(finding, declared.get(name))
    unbounded = "unbounded" in finding.metadata and bool(finding.metadata["unbounded"])
    return CriterionScore(name, score, finding.error, finding.skipped, unbounded)


def score_on_scale(finding: Finding, criterion: EvaluationCriteria | None) -> Score | None:
    """The raw score of a finding: its own, else its value or verdict brought onto the criterion's scale."""
    if finding.error is not None or finding.skipped:
        return None
    if finding.score is not None:
        return finding.score
    if finding.value is None:
        return finding.success
    if criterion is None or finding.kind == "metric":
        return finding.value
    # Where the scale knows only yes and no, the evaluator's own verdict is the score.
    return on_scale(finding.value, criterion, threshold=0.0 if finding.success else math.inf)


def _verdict(counted: Sequence[Finding]) -> Verdict:
    if not counted:
        return Verdict(outcome="pass", reason=NO_ASSERTIONS, asserted=False)
    failures = [r for r in counted if r.failed]
    if failures:
        # What had not held yet failed only when the conversation was over: what ended it comes first.
        first = min(failures, key=lambda r: math.inf if _awaited(r) else r.turn)
        return Verdict(outcome="fail", reason=first.reason or f"{first.label} failed", score=_score(counted))
    errors = [r for r in counted if r.error is not None]
    if errors:
        first = min(errors, key=lambda r: r.turn)
        reason = f'Evaluator "{first.name}": {first.reason.removeprefix(ERROR_PREFIX)}'
        return Verdict(outcome="error", reason=reason, fault=first.fault)
    return Verdict(outcome="pass", reason=ALL_PASSED, score=_score(counted))


def _score(counted: Sequence[Finding]) -> float | None:
    values = [0.0 if r.value is None else r.value for r in counted if r.value is not None or r.failed]
    return min(values, default=None)


def effective(entry: Entry, turns: Turns) -> list[Finding]:
    """The one result per latch that counts for an assertion."""
    return [_effective(entry.gate, results) for results in _latches(entry, turns).values()]


def _effective(gate: Gate, results: Sequence[Finding]) -> Finding:
    counted = [result for result in results if not result.skipped]
    if not counted:
        return results[-1]
    failures = [result for result in counted if result.failed]
    errors = [result for result in counted if result.error is not None]
    holding = [result for result in counted if result.holds]
    if gate == "eventually":
        decisive = [result for result in failures if result.decisive]
        chosen = (decisive or holding[:1] or errors[-1:] or failures[-1:])[0]
        return replace(chosen, pending=False) if chosen.pending else chosen
    if failures or errors:
        return (failures or errors)[0]
    return min(holding, key=lambda result: math.inf if result.value is None else result.value)


def _latches(entry: Entry, turns: Turns) -> dict[str | None, list[Finding]]:
    """The results of one entry by criterion name, one per turn; several in a turn are and-ed."""
    latches: dict[str | None, list[Finding]] = {}
    for results in turns:
        now: dict[str | None, Finding] = {}
        for result in results:
            if result.name == entry.key:
                known = now.get(result.criterion_name)
                now[result.criterion_name] = result if known is None else _both(known, result)
        for name, result in now.items():
            latches.setdefault(name, []).append(result)
    return latches


def _both(first: Finding, second: Finding) -> Finding:
    """Two results of one entry in one turn, and-ed: failure over error over success over skip."""
    worse, other = (first, second) if _weight(first) >= _weight(second) else (second, first)
    if worse.error is not None or worse.skipped:
        return worse
    values = [r.value for r in (first, second) if r.value is not None]
    decisive = worse.decisive or (other.decisive and other.success == worse.success)
    return replace(worse, value=min(values, default=None), decisive=decisive)


def _weight(result: Finding) -> int:
    if result.skipped:
        return 0
    return 3 if result.failed else 2 if result.error is not None else 1


def _reduced(entry: Entry, turns: Turns) -> Finding | None:
    """A metric over the whole conversation, with the last turn's reason."""
    findings = [result for results in turns for result in results if result.name == entry.key]
    if not findings:
        return None
    measured = [(f, f.value) for f in findings if f.value is not None and not f.missing]
    if not measured:
        return findings[-1]
    last, last_value = measured[-1]
    value = _reduce([value for _, value in measured], entry.reduce)
    return last if value == last_value else replace(last, value=value)


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
