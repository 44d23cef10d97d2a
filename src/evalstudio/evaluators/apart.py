"""Where an evaluator that may take long does its work: in a process that can be killed, under the limits."""

from __future__ import annotations

import pickle
from dataclasses import fields
from functools import lru_cache
from importlib import import_module
from typing import Any

from ..base.concurrency import Clock
from ..base.killable import Job, NotSendable, WorkKilled, WorkLimits, killable
from .contract import EvaluatorContext, TurnFacts
from .definition import Entry, EvaluatorDefinition
from .limits import limit_exceeded
from .records import RecordFacts

# What is read within some milliseconds stays where it is: a process of its own would cost more.
WORK_IN_PLACE = 200_000


# No text of a short record has more characters.
_SHORT = 2_000


class _ShortRecord(TurnFacts):
    """The longest of the short records, of which only the texts are known."""

    __slots__ = ()

    def __init__(self) -> None:
        self.given_response = self.given_prompt = self.ground_truth = "x" * _SHORT
        self._size = _SHORT


def quick_on_short(entry: Entry) -> bool:
    """Whether an entry takes no time on any short record, whatever it holds beside its texts."""
    return not may_take_long(entry, _ShortRecord())


def is_short(facts: TurnFacts) -> bool:
    """Whether the texts that evaluators compare are short, in a record that has little else."""
    truth = facts.ground_truth
    return (
        isinstance(facts, RecordFacts)
        and facts.size() <= _SHORT
        and (truth is None or (isinstance(truth, str) and len(truth) <= _SHORT))
    )


def may_take_long(entry: Entry, facts: TurnFacts) -> bool:
    """Whether one of our evaluators should do this turn apart from the event loop."""
    if not entry.builtin:
        return False
    work = entry.definition.work
    try:
        return (facts.size() if work is None else work(entry.config, facts)) > WORK_IN_PLACE
    except Exception:
        # What it cannot even estimate it will report itself.
        return True


async def run_apart(entry: Entry, facts: TurnFacts, clock: Clock) -> Any:
    """What the evaluator returns, from another process; who stops waiting ends it."""
    job = _job(entry, facts)
    try:
        return _taken(entry, facts, await killable.run(job, clock))
    except WorkKilled as error:
        raise _exceeded(error) from None


def call_apart(entry: Entry, facts: TurnFacts) -> Any:
    """The same, waited for where there is no event loop."""
    try:
        return _taken(entry, facts, killable.call(_job(entry, facts)))
    except WorkKilled as error:
        raise _exceeded(error) from None


def _job(entry: Entry, facts: TurnFacts) -> Job:
    limits = facts.limits
    if facts.size() > limits.evaluator_characters:
        message = (
            f"the agent sent {facts.size():,} characters in this turn; evaluators look at "
            f"{limits.evaluator_characters:,} at most"
        )
        raise limit_exceeded(message, "evaluatorCharacters")
    definition = entry.definition
    parts: dict[str, Any] = {part.name: getattr(facts, part.name) for part in fields(TurnFacts)}
    parts |= {"llm": None, "embedder": None, "final_readers": set()}
    alone = TurnFacts(**parts)
    try:
        written = pickle.dumps(dict(entry.written))
    except Exception as error:
        raise NotSendable(str(error)) from error
    args = (definition.module, definition.type, written, alone)
    return Job(evaluate, args, WorkLimits(limits.evaluator_seconds, limits.evaluator_megabytes))


def _taken(entry: Entry, facts: TurnFacts, outcome: tuple[Any, bool]) -> Any:
    returned, asked_final = outcome
    if asked_final:
        facts.final_readers.add(entry.key)
    return returned


def _exceeded(error: WorkKilled) -> Exception:
    limits = {"seconds": "evaluatorSeconds", "megabytes": "evaluatorMegabytes"}
    message = f"the evaluator {error}"
    limit = limits.get(error.resource)
    return RuntimeError(message) if limit is None else limit_exceeded(message, limit)


def evaluate(module: str, type_name: str, written: bytes, facts: TurnFacts) -> tuple[Any, bool]:
    """In the other process: what the evaluator returns, and whether it asked if the turn is the last."""
    definition, config = _configured(module, type_name, written)
    ctx = EvaluatorContext(config, facts)
    returned = definition.function(ctx)
    return returned, ctx.asked_final


@lru_cache(maxsize=16)
def _configured(module: str, type_name: str, written: bytes) -> tuple[EvaluatorDefinition, Any]:
    """The evaluator with its config, parsed once for many turns."""
    for definition in vars(import_module(module)).values():
        if isinstance(definition, EvaluatorDefinition) and definition.type == type_name:
            return definition, definition.config.parse(type_name, pickle.loads(written))
    raise LookupError(f"{module} has no evaluator {type_name}")
