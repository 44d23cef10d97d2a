"""Running the evaluators of one turn: errors become values, neighbours are never disturbed.

Inline evaluators are called in place, with no task, thread or validation per call, unless there is so much to
look at that they go into a process of their own. Others run side by side, each under its own time limit;
blocking functions run in worker threads.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from time import perf_counter
from typing import Any, cast

from pydantic import BaseModel

from ..base.concurrency import Clock, WorkAborted, bounded, evaluator_threads
from ..base.copies import own_copy
from ..base.killable import NotSendable
from ..base.traces import described, is_ours, trace_of
from ..telemetry import evaluator
from .apart import call_apart, may_take_long, run_apart
from .contract import EvaluationResult, EvaluatorContext, OwnFacts, TurnFacts
from .criteria import EvaluationCriteria, Excluded, normalize
from .definition import Entry
from .results import ERROR_PREFIX, UNSEEN_MODEL, Finding
from .returned import UnreadableResult, read_returned

log = logging.getLogger("evalstudio")

BLOCKED_SECONDS = 0.25
NO_RESULT = "returned no result"
_LONGEST_REASON = 10_000


async def run_entries(
    entries: Iterable[Entry], facts: TurnFacts, limit: asyncio.Semaphore | None = None
) -> list[Finding]:
    """Run entries side by side, under the limit if there is one, and return their results in order."""
    results: list[list[Finding]] = []
    waiting: list[tuple[int, Entry]] = []
    for entry in entries:
        if entry.inline and not may_take_long(entry, facts):
            with evaluator(entry.definition.type, entry.key) as span:
                results.append(_run_inline(entry, facts))
                span.found(results[-1])
        else:
            waiting.append((len(results), entry))
            results.append([])
    if len(waiting) == 1:
        place, entry = waiting[0]
        results[place] = await _run_limited(entry, facts, limit)
    elif waiting:
        answers = await asyncio.gather(*(_run_limited(entry, facts, limit) for _, entry in waiting))
        for (place, _), answer in zip(waiting, answers, strict=True):
            results[place] = answer
    return [finding for findings in results for finding in findings]


async def run_turn(
    entries: Sequence[Entry],
    facts: TurnFacts,
    *,
    models_after_failure: bool = False,
    limit: asyncio.Semaphore | None = None,
) -> list[Finding]:
    """Run the fast entries, then the model-backed ones unless an ``always`` assertion has failed."""
    slow = [entry for entry in entries if entry.definition.cost != "fast"]
    if not slow:
        return await run_entries(entries, facts, limit)
    results = await run_entries([e for e in entries if e.definition.cost == "fast"], facts, limit)
    failure = next((r for r in results if r.failed and r.kind == "assertion" and r.gate == "always"), None)
    if models_after_failure or failure is None:
        results += await run_entries(slow, facts, limit)
    else:
        results += [_not_asked(entry, facts, failure) for entry in slow]
    order = {entry.key: place for place, entry in enumerate(entries)}
    results.sort(key=lambda result: order[result.name])
    return results


def _not_asked(entry: Entry, facts: TurnFacts, failure: Finding) -> Finding:
    """The row of an entry whose model was spared, because the turn had failed without it."""
    finding = _result(entry, facts, perf_counter())
    finding.skipped = True
    finding.reason = f"not asked: {failure.label} had already failed"
    finding.metadata = {"notAsked": True}
    return finding


def run_inline(entries: Iterable[Entry], facts: TurnFacts) -> list[Finding]:
    """Run inline entries in place, where there is nothing to wait for."""
    findings: list[Finding] = []
    for entry in entries:
        findings += _run_inline(entry, facts, call_apart if may_take_long(entry, facts) else None)
    return findings


def _context(entry: Entry, facts: TurnFacts) -> EvaluatorContext[Any]:
    """What an entry sees. Only our own evaluators, which change nothing, share it."""
    if entry.builtin:
        return EvaluatorContext(entry.config, facts)
    # The config of an evaluator written as a class is the evaluator itself.
    copied = issubclass(type(entry.config), dict | BaseModel)
    return EvaluatorContext(own_copy(entry.config) if copied else entry.config, OwnFacts(facts))


def _run_inline(
    entry: Entry, facts: TurnFacts, apart: Callable[[Entry, TurnFacts], object] | None = None
) -> list[Finding]:
    start = perf_counter()
    ctx = _context(entry, facts)
    try:
        if apart is not None:
            with suppress(NotSendable):
                return _settle(entry, apart(entry, facts), facts, start)
        returned: object = entry.definition.function(ctx)
        return _noted(entry, ctx, _settle(entry, returned, facts, start))
    except (Exception, SystemExit) as error:
        return _noted(entry, ctx, [_raised(entry, facts, error, start)])
    finally:
        if ctx.asked_final:
            facts.final_readers.add(entry.key)


async def _run_limited(entry: Entry, facts: TurnFacts, limit: asyncio.Semaphore | None) -> list[Finding]:
    if stored := facts.stored_findings.get((entry.key, facts.turn)):
        return [replace(finding) for finding in stored]
    async with limit or nullcontext():
        with evaluator(entry.definition.type, entry.key) as span:
            findings = await _run_apart(entry, facts)
            span.found(findings)
            return findings


async def _run_apart(entry: Entry, facts: TurnFacts) -> list[Finding]:
    start, clock = perf_counter(), Clock()
    ctx = _context(entry, facts)
    try:
        if entry.definition.cost == "fast" and may_take_long(entry, facts):
            # Objects of a program cannot be sent; who uses them in its config trusts them.
            with suppress(NotSendable):
                return _settle(entry, await run_apart(entry, facts, clock), facts, start)
        returned = await bounded(_call(entry, ctx, clock), entry.definition.timeout, clock)
        # What it waited for, a thread or a model's limit, is not its time.
        return _noted(entry, ctx, _settle(entry, returned, facts, perf_counter() - clock.seconds()))
    except WorkAborted as error:
        return _noted(entry, ctx, [_errored(entry, facts, f"the evaluator {error}", start)])
    except Exception as error:
        return _noted(entry, ctx, [_raised(entry, facts, error, start)])
    finally:
        if ctx.asked_final:
            facts.final_readers.add(entry.key)


def _noted(entry: Entry, ctx: EvaluatorContext[Any], findings: list[Finding]) -> list[Finding]:
    """What a plugin found that says it asks a model and asked none of ours: what it used is not known."""
    own = ctx.facts
    if entry.definition.cost != "fast" and isinstance(own, OwnFacts) and not own.asked_model:
        for finding in findings:
            finding.metadata = {**finding.metadata, UNSEEN_MODEL: True}
    return findings


async def _call(entry: Entry, ctx: EvaluatorContext[Any], clock: Clock) -> object:
    definition = entry.definition
    if definition.is_async:
        returned: object = definition.function(ctx)
    else:
        returned = await evaluator_threads.run(lambda: definition.function(ctx), clock)
    if inspect.iscoroutine(returned):
        steps = _Watched(cast(Coroutine[Any, Any, object], returned))
        returned = await steps
        # The advice is for authors of plugins; our own await, and only start slowly on a busy machine.
        if steps.longest > BLOCKED_SECONDS and not entry.builtin:
            log.warning(
                'Evaluator "%s" blocked the event loop for %.1f s; everything else had to wait. '
                "Make it a plain def (it then runs in a worker thread) or await inside it.",
                definition.type,
                steps.longest,
            )
    return returned


class _Watched:
    """Awaits a coroutine and remembers its longest step between two awaits."""

    __slots__ = ("_coroutine", "longest")

    def __init__(self, coroutine: Coroutine[Any, Any, object]) -> None:
        self._coroutine = coroutine
        self.longest = 0.0

    def __await__(self) -> Generator[Any, Any, object]:
        send, thrown = None, None
        while True:
            start = perf_counter()
            try:
                step = self._coroutine.send(send) if thrown is None else self._coroutine.throw(thrown)
            except StopIteration as done:
                return done.value
            finally:
                self.longest = max(self.longest, perf_counter() - start)
            send, thrown = None, None
            try:
                send = yield step
            except GeneratorExit:
                self._coroutine.close()
                raise
            except BaseException as error:
                thrown = error


def _raised(entry: Entry, facts: TurnFacts, error: BaseException, start: float) -> Finding:
    """What an evaluator raised: our own errors say all in words, others are told with their place."""
    definition = entry.definition
    if is_ours(error) and error.__cause__ is None:
        return _errored(entry, facts, str(error) or type(error).__name__, start)
    worded = is_ours(error) or (isinstance(error, ValueError) and entry.builtin)
    finding = _errored(entry, facts, str(error) if worded else described(error, definition.plugin), start)
    finding.traceback = trace_of(error)
    return finding


def _errored(entry: Entry, facts: TurnFacts, message: str, start: float) -> Finding:
    result = _result(entry, facts, start)
    result.criterion_name = getattr(entry.config, "criterion_name", None)
    result.success = entry.kind == "metric"
    result.error = message[:_LONGEST_REASON]
    result.fault = "judge" if entry.definition.cost == "llm" else "evaluator"
    result.reason = ERROR_PREFIX + result.error
    return result


def _result(entry: Entry, facts: TurnFacts, start: float) -> Finding:
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


def _settle(entry: Entry, returned: object, facts: TurnFacts, start: float) -> list[Finding]:
    """Bring whatever an evaluator returned into shape; nonsense becomes an error."""
    if entry.builtin and isinstance(returned, EvaluationResult):
        return [_settle_one(entry, returned, facts, start)]
    try:
        results = _results(entry, returned)
    except UnreadableResult as error:
        return [_errored(entry, facts, str(error), start)]
    if not results:
        return _nothing(entry, facts, start)
    findings = [
        _errored(entry, facts, str(result), start)
        if isinstance(result, UnreadableResult)
        else _settle_one(entry, result, facts, start)
        for result in results
    ]
    return findings if len(findings) == 1 else _numbered(findings)


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
    finding = _result(entry, facts, start)
    finding.skipped = True
    finding.reason = NO_RESULT
    return [finding]


def _settle_one(entry: Entry, returned: EvaluationResult, facts: TurnFacts, start: float) -> Finding:
    if returned.error is not None:
        result = _returned_error(entry, returned, facts, returned.error, start)
        result.reason = returned.reason or result.reason
        return result
    result = _result(entry, facts, start)
    result.reason = returned.reason[:_LONGEST_REASON]
    result.metadata = returned.metadata
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
    finding = _errored(entry, facts, message, start)
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
