"""What an evaluator returned or raised as a finding: nonsense becomes an error, never a pass."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from time import perf_counter
from typing import cast

from ..base.traces import described, is_ours, trace_of
from .contract import EvaluationResult, RepeatedResult, TurnFacts
from .criteria import EvaluationCriteria, Excluded, normalize
from .definition import Entry
from .results import ERROR_PREFIX, Finding
from .returned import UnreadableResult, read_returned

NO_RESULT = "returned no result"
LONGEST_REASON = 10_000


def raised(entry: Entry, facts: TurnFacts, error: BaseException, start: float) -> Finding:
    """What an evaluator raised: our own errors say all in words, others are told with their place."""
    definition = entry.definition
    if is_ours(error) and error.__cause__ is None:
        return errored(entry, facts, str(error) or type(error).__name__, start)
    worded = is_ours(error) or (isinstance(error, ValueError) and entry.builtin)
    finding = errored(entry, facts, str(error) if worded else described(error, definition.plugin), start)
    finding.traceback = trace_of(error)
    return finding


def errored(entry: Entry, facts: TurnFacts, message: str, start: float) -> Finding:
    result = new_finding(entry, facts, start)
    result.criterion_name = getattr(entry.config, "criterion_name", None)
    result.success = entry.kind == "metric"
    result.error = message[:LONGEST_REASON]
    result.fault = "judge" if entry.definition.cost == "llm" else "evaluator"
    result.reason = ERROR_PREFIX + result.error
    return result


def new_finding(entry: Entry, facts: TurnFacts, start: float) -> Finding:
    definition = entry.definition
    return Finding(
        type=definition.type,
        label=definition.label,
        name=entry.key,
        kind=definition.kind,
        gate=entry.gate,
        success=True,
        turn=facts.turn,
        duration_ms=(perf_counter() - start) * 1000,
        unit=entry.unit,
        threshold=entry.threshold,
    )


def settle(entry: Entry, returned: object, facts: TurnFacts, start: float) -> list[Finding]:
    """Bring whatever an evaluator returned into shape; nonsense becomes an error."""
    if entry.builtin and isinstance(returned, EvaluationResult):
        return [_settle_one(entry, returned, facts, start)]
    try:
        results = _results(entry, returned)
    except UnreadableResult as error:
        return [errored(entry, facts, str(error), start)]
    if not results:
        return _nothing(entry, facts, start)
    findings = [
        errored(entry, facts, str(result), start)
        if isinstance(result, UnreadableResult)
        else _settle_one(entry, result, facts, start)
        for result in results
    ]
    return findings if len(findings) == 1 else _numbered(findings)


def plain_result(entry: Entry, returned: object) -> EvaluationResult | None:
    """What one of our own evaluators returned, where a finding would say the same in every part."""
    if isinstance(returned, list):
        several = cast(list[object], returned)
        returned = several[0] if len(several) == 1 else None
    if type(returned) is RepeatedResult:
        return returned
    if not isinstance(returned, EvaluationResult) or returned.error is not None or returned.skipped:
        return None
    value = returned.value
    if entry.definition.kind == "metric":
        readable = type(value) is float and math.isfinite(value)
    elif value is None:
        readable = returned.success is not None and returned.score is None
    else:
        readable = type(value) is float and 0 <= value <= 1 and returned.success is not None
    return returned if readable and len(returned.reason) <= LONGEST_REASON else None


def _results(entry: Entry, returned: object) -> Sequence[EvaluationResult | UnreadableResult]:
    if entry.builtin and isinstance(returned, list):
        return cast(list[EvaluationResult], returned)
    return read_returned(returned, metric=entry.kind == "metric")


def _numbered(findings: list[Finding]) -> list[Finding]:
    """Several results on one criterion, or on none, are told apart by their number."""
    several = Counter(finding.criterion_name for finding in findings)
    numbers: Counter[str | None] = Counter()
    for finding in findings:
        name = finding.criterion_name
        if several[name] > 1:
            numbers[name] += 1
            finding.rule = numbers[name]
    return findings


def _nothing(entry: Entry, facts: TurnFacts, start: float) -> list[Finding]:
    """No result holds nothing and fails nothing, and says so.

    An entry whose criteria are not among the record's own has nothing to say: that the coverage tells.
    """
    names = entry.criterion_names
    if names and not any(criterion.name in names for criterion in facts.criteria):
        return []
    finding = new_finding(entry, facts, start)
    finding.skipped = True
    finding.reason = NO_RESULT
    return [finding]


def _settle_one(entry: Entry, returned: EvaluationResult, facts: TurnFacts, start: float) -> Finding:
    if returned.error is not None:
        result = _returned_error(entry, returned, facts, returned.error, start)
        result.reason = returned.reason or result.reason
        return result
    result = new_finding(entry, facts, start)
    result.reason = returned.reason[:LONGEST_REASON]
    shared = type(returned) is RepeatedResult
    result.metadata = dict(returned.metadata) if shared else returned.metadata
    result.criterion_name = returned.criterion_name
    result.decisive = returned.decisive
    if returned.skipped:
        result.skipped = True
        return result
    try:
        result.score = returned.score
        # Our own evaluators that have a value took the score from it, or it from the score.
        settled = returned.score is None or (entry.builtin and returned.value is not None)
        place = None if settled else _place(entry, returned, facts)
        result.value = _value(entry, returned, place)
        result.success = entry.kind == "metric" or _success(entry, returned, result.value, place)
    except (ValueError, TypeError, OverflowError) as error:
        result = _returned_error(entry, returned, facts, str(error), start)
        result.score = returned.score
    return result


def _returned_error(
    entry: Entry, returned: EvaluationResult, facts: TurnFacts, message: str, start: float
) -> Finding:
    finding = errored(entry, facts, message, start)
    finding.criterion_name = returned.criterion_name or finding.criterion_name
    finding.metadata = returned.metadata
    # Kept for the coverage, which tells what was left out and why.
    finding.score = returned.score
    return finding


def _place(entry: Entry, returned: EvaluationResult, facts: TurnFacts) -> float | None:
    """Where an assertion's score is on its criterion's scale, from 0 to 1. It must have a place there."""
    assert returned.score is not None
    if entry.kind == "metric":
        return None
    criterion = _criterion(returned.criterion_name or entry.key, facts)
    if criterion is None:
        # Yes and no need no scale; anything else means something only on one.
        if isinstance(returned.score, bool):
            return float(returned.score)
        if returned.criterion_name is None:
            return None
        raise ValueError(f'no criterion is named "{returned.criterion_name}", so nothing says its scale')
    try:
        return normalize(returned.score, criterion)
    except Excluded as reason:
        raise ValueError(f"score has no place on its scale: {reason}") from None


def _criterion(name: str, facts: TurnFacts) -> EvaluationCriteria | None:
    for criterion in facts.criteria:
        if criterion.name == name:
            return criterion
    return None


def _value(entry: Entry, returned: EvaluationResult, place: float | None) -> float | None:
    value = returned.value if returned.value is not None else place
    if value is None and returned.criterion_name is None and isinstance(returned.score, int | float):
        value = returned.score
    if value is None:
        if entry.kind == "metric" and returned.score is None and not returned.metadata.get("missing"):
            raise ValueError("a metric must have a value")
        return None
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"value {number} is not a finite number")
    if entry.kind == "assertion" and not 0 <= number <= 1:
        raise ValueError(f"value {number:g} of an assertion is outside 0–1; a metric may have any value")
    return number


def _success(entry: Entry, returned: EvaluationResult, value: float | None, place: float | None) -> bool:
    if returned.success is not None:
        return returned.success
    bar = 0.5 if entry.threshold is None else entry.threshold
    number = value if place is None else place
    if number is None:
        raise ValueError("a result needs success, a value or a score")
    return number >= bar
