"""Running the evaluators of one turn: errors become values, neighbours are never disturbed.

Inline evaluators are called in place, with no task, thread or validation per call. Others run side by
side, each under its own time limit; blocking functions run in worker threads.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections.abc import Coroutine, Generator, Iterable, Sequence
from time import perf_counter
from typing import Any, cast

from ..base.concurrency import WorkAborted, blocking, bounded
from ..base.traces import described, is_ours, trace_of
from .contract import EvaluationResult, EvaluatorContext, TurnFacts, is_results
from .criteria import Excluded, normalize
from .definition import Entry
from .results import ERROR_PREFIX, Finding

log = logging.getLogger("evalstudio")

BLOCKED_SECONDS = 0.25
_OURS = "evalstudio."
_LONGEST_REASON = 10_000


async def run_entries(
    entries: Iterable[Entry], facts: TurnFacts, limit: asyncio.Semaphore | None = None
) -> list[Finding]:
    """Run entries side by side, under the limit if there is one, and return their results in order."""
    results: list[list[Finding]] = []
    waiting: list[tuple[int, Entry]] = []
    for entry in entries:
        if entry.inline:
            results.append(_run_inline(entry, facts))
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
    broken = any(r.failed and r.kind == "assertion" and r.gate == "always" for r in results)
    if models_after_failure or not broken:
        results += await run_entries(slow, facts, limit)
        order = {entry.key: place for place, entry in enumerate(entries)}
        results.sort(key=lambda result: order[result.name])
    return results


def run_inline(entries: Iterable[Entry], facts: TurnFacts) -> list[Finding]:
    """Run inline entries in place, where there is nothing to wait for."""
    return [result for entry in entries for result in _run_inline(entry, facts)]


def _run_inline(entry: Entry, facts: TurnFacts) -> list[Finding]:
    start = perf_counter()
    try:
        returned: object = entry.definition.function(EvaluatorContext(entry.config, facts))
        return _settle(entry, returned, facts, start)
    except (Exception, SystemExit) as error:
        return [_raised(entry, facts, error, start)]


async def _run_limited(entry: Entry, facts: TurnFacts, limit: asyncio.Semaphore | None) -> list[Finding]:
    if limit is None:
        return await _run_apart(entry, facts)
    async with limit:
        return await _run_apart(entry, facts)


async def _run_apart(entry: Entry, facts: TurnFacts) -> list[Finding]:
    start = perf_counter()
    try:
        returned = await bounded(_call(entry, facts), entry.definition.timeout)
        return _settle(entry, returned, facts, start)
    except WorkAborted as error:
        return [_errored(entry, facts, f"the evaluator {error}", start)]
    except Exception as error:
        return [_raised(entry, facts, error, start)]


async def _call(entry: Entry, facts: TurnFacts) -> object:
    definition = entry.definition
    ctx = EvaluatorContext(entry.config, facts)
    if definition.is_async:
        returned: object = definition.function(ctx)
    else:
        returned = await blocking.run(lambda: definition.function(ctx))
    if inspect.iscoroutine(returned):
        steps = _Watched(cast(Coroutine[Any, Any, object], returned))
        returned = await steps
        # The advice is for authors of plugins; our own await, and only start slowly on a busy machine.
        if steps.longest > BLOCKED_SECONDS and not definition.module.startswith(_OURS):
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
    worded = is_ours(error) or (isinstance(error, ValueError) and definition.module.startswith(_OURS))
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
    )


def _settle(entry: Entry, returned: object, facts: TurnFacts, start: float) -> list[Finding]:
    """Bring whatever an evaluator returned into shape; nonsense becomes an error."""
    if isinstance(returned, EvaluationResult):
        return [_settle_one(entry, returned, facts, start)]
    if isinstance(returned, bool):
        number = None if entry.kind == "assertion" else float(returned)
        return [_settle_one(entry, EvaluationResult(returned, number), facts, start)]
    if isinstance(returned, int | float):
        return [_settle_one(entry, EvaluationResult(value=returned), facts, start)]
    if is_results(returned):
        results = cast(Sequence[EvaluationResult], returned)
        return [_settle_one(entry, result, facts, start) for result in results]
    kind = "nothing" if returned is None else f"a {type(returned).__name__}"
    return [
        _errored(entry, facts, f"returned {kind}; expected an EvaluationResult, a bool or a number", start)
    ]


def _settle_one(entry: Entry, returned: EvaluationResult, facts: TurnFacts, start: float) -> Finding:
    if malformed := _malformed(returned):
        return _errored(entry, facts, malformed, start)
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
        result.value = _value(entry, returned)
        result.success = entry.kind == "metric" or _success(entry, returned, result.value, facts)
    except (ValueError, TypeError) as error:
        return _returned_error(entry, returned, facts, str(error), start)
    return result


def _returned_error(
    entry: Entry, returned: EvaluationResult, facts: TurnFacts, message: str, start: float
) -> Finding:
    finding = _errored(entry, facts, message, start)
    finding.criterion_name = returned.criterion_name or finding.criterion_name
    finding.metadata = returned.metadata
    return finding


# Plugins need not be type-checked: a result that would break a reader later is refused here.
_TEXT = (str, type(None))
_SCORE = (bool, int, float, str, type(None))


def _malformed(returned: Any) -> str | None:
    """What is wrong with the shape of a result, if anything."""
    if not isinstance(returned.reason, str):
        return _wrong("reason", returned.reason, "text")
    if not isinstance(returned.metadata, dict):
        return _wrong("metadata", cast(object, returned.metadata), "a dict")
    if not isinstance(returned.criterion_name, _TEXT):
        return _wrong("criterion_name", returned.criterion_name, "text")
    if not isinstance(returned.score, _SCORE):
        return _wrong("score", returned.score, "a bool, a number or text")
    if not isinstance(returned.error, _TEXT):
        return _wrong("error", returned.error, "text")
    return None


def _wrong(name: str, value: object, expected: str) -> str:
    return f"returned a result whose {name} is a {type(value).__name__}, not {expected}"


def _value(entry: Entry, returned: EvaluationResult) -> float | None:
    value = returned.value
    if value is None and returned.criterion_name is None and isinstance(returned.score, int | float):
        value = returned.score
    if value is None:
        if entry.kind == "metric" and returned.score is None:
            raise ValueError("a metric must have a value")
        return None
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"value {number} is not a finite number")
    if entry.kind == "assertion" and not 0 <= number <= 1:
        raise ValueError(f"value {number:g} of an assertion is outside 0–1; a metric may have any value")
    return number


def _success(entry: Entry, returned: EvaluationResult, value: float | None, facts: TurnFacts) -> bool:
    if returned.success is not None:
        return bool(returned.success)
    threshold = getattr(entry.config, "threshold", None)
    bar = float(threshold) if isinstance(threshold, int | float) else 0.5
    if value is not None:
        return value >= bar
    if returned.score is None:
        raise ValueError("a result needs success, a value or a score")
    criterion = next((c for c in facts.criteria if c.name == returned.criterion_name), None)
    if criterion is None:
        if isinstance(returned.score, bool):
            return returned.score
        raise ValueError(f'no criterion "{returned.criterion_name}" is declared to read the score by')
    try:
        return normalize(returned.score, criterion) >= bar
    except Excluded as reason:
        raise ValueError(f"score has no place on its scale: {reason}") from None
