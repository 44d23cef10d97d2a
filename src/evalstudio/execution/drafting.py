"""A scenario drafted from a run: today's conversation as tomorrow's regression test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput
from ..conversation.definitions import Case, EvaluatorUse, Scenario
from ..conversation.placeholders import has_placeholders
from ..evaluators.results import Turn
from ..messages import Message, text_of
from ..project.entities import Run
from .reviewing import call_rule
from .workspace import Workspace

_CALLED = "tools called"
_LONGEST_NAME = 150


async def draft_scenario(workspace: Workspace, run: Run, *, name: str | None = None) -> Scenario:
    """A scenario that says what the user said in a run and judges as its scenario did.

    The tools that the agent called are drafted as expectations, and so are the run's reference and context.
    It is a draft: what the agent did wrong then stands in it as if it were right, for a person to mend.
    """
    literal = _Literals(dict(run.case.vars) if run.case else {})
    script = [literal(text) for turn in run.turns if (text := _user_text(turn))]
    if not script:
        raise InvalidInput(f"run {run.id} holds no words of a user, so there is nothing to ask again")
    then = await workspace.store.snapshots(run.id)
    source = Scenario.model_validate(dict(then["scenario"] or {}))
    before = [message for turn in run.turns if turn.number == 0 for message in turn.messages]
    seeds = [message.model_copy(update={"content": literal.of(message.content)}) for message in before]
    case = run.case
    # Ground truth and context of a case are the scenario's own here: there is one conversation only.
    update: dict[str, Any] = {
        "name": name or _name(run),
        "script": script,
        "messages": seeds,
        "max_messages": None,
        "persona_ids": [],
        "cases": [Case(vars=literal.values)] if literal.values else [],
        "ground_truth": case.ground_truth if case and case.ground_truth is not None else source.ground_truth,
        "context": {**source.context, **(case.context if case else {})},
        "evaluators": [*source.evaluators, *_expected_calls(run, source)],
    }
    return source.model_copy(update=update)


@dataclass(slots=True)
class _Literals:
    """Texts as they were said: what looks like a placeholder in one becomes the value of a placeholder."""

    values: dict[str, Any]

    def __call__(self, text: str) -> str:
        if not has_placeholders(text):
            return text
        name = next(name for number in count(1) if (name := f"said{number}") not in self.values)
        self.values[name] = text
        return f"{{{{{name}}}}}"

    def of(self, content: Any) -> Any:
        return self(content) if isinstance(content, str) else content


def _name(run: Run) -> str:
    parts = [run.scenario_name, run.case_name, f"run {run.id}"]
    return " · ".join(part for part in parts if part)[-_LONGEST_NAME:]


def _user_text(turn: Turn) -> str | None:
    """What the user said in a turn; several messages in a row are sent as one."""
    spoken = [] if turn.user_message is None else [turn.user_message]
    spoken += [message for message in turn.messages if message.role == "user"]
    return "\n\n".join(text for message in spoken if (text := text_of(message).strip())) or None


def _expected_calls(run: Run, source: Scenario) -> Iterator[EvaluatorUse]:
    """The calls that a recording expects, else the tools that were called, for a person to add arguments."""
    names = {use.name for use in source.evaluators}
    expected = ((run.output or {}).get("recording") or {}).get("expectedCalls") or ()
    calls = _calls([message for turn in run.turns if turn.number > 0 for message in turn.messages])
    rules = [call_rule(call, number) for number, call in enumerate(expected)]
    rules = rules or [{"tool": tool, "required": True} for tool in dict.fromkeys(calls)]
    if rules and _CALLED not in names:
        yield EvaluatorUse(type="tool-usage", name=_CALLED, config={"rules": rules})


def _calls(messages: Sequence[Message]) -> list[str]:
    return [call.name for message in messages for call in message.tool_calls or ()]
