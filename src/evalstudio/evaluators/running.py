"""Running the evaluators of one turn: errors become values, neighbours are never disturbed.

Inline evaluators are called in place, with no task, thread or validation per call, unless there is so much to
look at that they go into a process of their own. Others run side by side, each under its own time limit;
blocking functions run in worker threads.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from time import perf_counter
from typing import Any, cast

from pydantic import BaseModel

from ..base.concurrency import Clock, WorkAborted, bounded, evaluator_threads
from ..base.copies import own_copy
from ..base.killable import NotSendable
from ..telemetry import evaluator
from .apart import call_apart, is_short, may_take_long, quick_on_short, run_apart
from .contract import EvaluationResult, EvaluatorContext, OwnFacts, RepeatedResult, TurnFacts
from .definition import Entry, Function
from .results import UNSEEN_MODEL, Finding
from .settling import errored, new_finding, plain_result, raised, settle

log = logging.getLogger("evalstudio")

BLOCKED_SECONDS = 0.25
# With what it sees, and whether it is one of ours that is known to take no time on any short record.
InlineEntry = tuple[Entry, Function, EvaluatorContext[Any], bool]
InlineOutcome = EvaluationResult | list[Finding]


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
    finding = new_finding(entry, facts, perf_counter())
    finding.skipped = True
    finding.reason = f"not asked: {failure.label} had already failed"
    finding.metadata = {"notAsked": True}
    return finding


def run_inline(entries: Sequence[Entry], facts: TurnFacts) -> list[Finding]:
    """Run inline entries in place, where there is nothing to wait for."""
    return findings_of(entries, call_inline(inline_entries(entries), facts), facts)


def inline_entries(entries: Iterable[Entry]) -> list[InlineEntry]:
    # A context without facts: it gets those of one turn after the other.
    return [
        (
            entry,
            entry.definition.function,
            EvaluatorContext(entry.config, TurnFacts()),
            entry.builtin and quick_on_short(entry),
        )
        for entry in entries
    ]


def call_inline(entries: Iterable[InlineEntry], facts: TurnFacts) -> list[InlineOutcome]:
    """Run inline entries in place: plain results of our own as they stand, all else as findings."""
    outcomes: list[InlineOutcome] = []
    short = is_short(facts)
    for entry, function, ctx, quick in entries:
        if not (short and quick) and (not entry.builtin or may_take_long(entry, facts)):
            outcomes.append(_run_inline(entry, facts, call_apart if entry.builtin else None))
            continue
        ctx.facts = facts
        try:
            returned: object = function(ctx)
            plain = returned if type(returned) is RepeatedResult else plain_result(entry, returned)
            outcomes.append(settle(entry, returned, facts, perf_counter()) if plain is None else plain)
        except (Exception, SystemExit) as error:
            outcomes.append([raised(entry, facts, error, perf_counter())])
        if ctx.asked_final:
            ctx.asked_final = False
            facts.final_readers.add(entry.key)
    return outcomes


def findings_of(
    entries: Iterable[Entry], outcomes: Iterable[InlineOutcome], facts: TurnFacts
) -> list[Finding]:
    """What inline entries came to, all of it as findings."""
    findings: list[Finding] = []
    for entry, outcome in zip(entries, outcomes, strict=True):
        if isinstance(outcome, EvaluationResult):
            outcome = settle(entry, outcome, facts, perf_counter())
        findings += outcome
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
                return settle(entry, apart(entry, facts), facts, start)
        returned: object = entry.definition.function(ctx)
        return _noted(entry, ctx, settle(entry, returned, facts, start))
    except (Exception, SystemExit) as error:
        return _noted(entry, ctx, [raised(entry, facts, error, start)])
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
                return settle(entry, await run_apart(entry, facts, clock), facts, start)
        returned = await bounded(_call(entry, ctx, clock), entry.definition.timeout, clock)
        # What it waited for, a thread or a model's limit, is not its time.
        return _noted(entry, ctx, settle(entry, returned, facts, perf_counter() - clock.seconds()))
    except WorkAborted as error:
        return _noted(entry, ctx, [errored(entry, facts, f"the evaluator {error}", start)])
    except Exception as error:
        return _noted(entry, ctx, [raised(entry, facts, error, start)])
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
