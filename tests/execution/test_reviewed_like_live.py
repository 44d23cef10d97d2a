"""The same conversation, held live and reviewed, comes to the same, turn by turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.models import ScriptedLlm

from evalstudio import EvaluationResult, define_evaluator, run_scenario
from evalstudio.conversation.definitions import Scenario
from evalstudio.conversation.preparation import Services, prepare
from evalstudio.conversation.results import RunResult
from evalstudio.evaluators.results import Turn
from evalstudio.execution.reviewing import judge_recorded, with_conversation
from evalstudio.messages import Message
from evalstudio.plugins import create_registry
from evalstudio.recordings.conversation import ConversationBuilder, RecordedConversation

WORDS = ("fine", "bad", "done", "odd", "stop", "won")


@define_evaluator(type="says", config={"type": "object"})
def says(ctx: Any) -> EvaluationResult:
    """A word of the agent decides: one that is odd raises, one that says stop or won is decisive."""
    word = ctx.config["word"]
    if "odd" in ctx.response and ctx.config.get("raises"):
        raise RuntimeError("odd")
    decisive = ctx.response in ("stop", "won") and bool(ctx.config.get("decisive"))
    holds = (word in ctx.response) != bool(ctx.config.get("not"))
    return EvaluationResult(holds, reason=f"turn {ctx.turn}", decisive=decisive)


@define_evaluator(type="only-at-the-end")
def only_at_the_end(ctx: Any) -> EvaluationResult:
    if not ctx.is_final:
        return EvaluationResult.skip("not the last turn")
    return EvaluationResult("bad" not in ctx.response, reason=f"last of {len(ctx.messages)} messages")


@define_evaluator(type="counted", kind="metric", reduce="sum")
def counted(ctx: Any) -> float:
    return float(len(ctx.invocations))


CHECKS: Sequence[Any] = (
    says.use({"word": "bad", "not": True}, gate="always", name="never bad"),
    says.use({"word": "odd", "not": True, "raises": True}, gate="always", name="never odd"),
    says.use({"word": "done"}, gate="eventually", name="done once"),
    says.use({"word": "won", "decisive": True}, gate="eventually", name="won or stopped"),
    says.use({"word": "fine"}, gate="finally", name="fine at the end"),
    only_at_the_end.use(),
    counted.use(),
    {"type": "response-length"},
)


@dataclass(frozen=True)
class Told:
    """A conversation to be held: what the agent says to so many messages of the user, and who looks."""

    replies: list[str]
    checks: list[Any]
    simulated: bool
    stop_on_failure: bool

    @property
    def scenario(self) -> Scenario:
        asked = [f"message {number}" for number in range(len(self.replies))]
        return Scenario.model_validate(
            {
                "name": "s",
                **({"instructions": "Ask."} if self.simulated else {"script": asked}),
                "maxMessages": 2 * len(self.replies),
                "evaluators": self.checks,
                "stopOnFailure": self.stop_on_failure,
            }
        )

    @property
    def whole(self) -> RecordedConversation:
        """All of it, also what a live run would not have come to."""
        builder = ConversationBuilder()
        for number, reply in enumerate(self.replies):
            builder.add(Message(role="user", content=f"message {number}"))
            builder.add(Message(role="assistant", content=reply))
        return RecordedConversation("c", builder.turns)


TOLD = st.builds(
    Told,
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=5),
    st.lists(st.sampled_from(range(len(CHECKS))), min_size=1, unique=True).map(
        lambda places: [CHECKS[place] for place in sorted(places)]
    ),
    st.booleans(),
    st.booleans(),
)


def hold(told: Told) -> RunResult:
    replies, asked = list(told.replies), iter(range(99))
    llm = ScriptedLlm(persona=lambda messages: {"message": f"message {next(asked)}", "stop": False})
    return asyncio.run(run_scenario(told.scenario, lambda messages: replies.pop(0), llm=llm))


def review(told: Told, conversation: RecordedConversation) -> RunResult:
    prepared = prepare(told.scenario, create_registry(), recorded=True)
    return asyncio.run(judge_recorded(with_conversation(prepared, conversation), conversation, Services()))


def findings(turn: Turn, *, measured: bool = True) -> list[dict[str, Any]]:
    """What was found on a turn; how long that took is nobody's."""
    return [
        {key: item for key, item in finding.to_json().items() if key not in ("durationMs", "traceback")}
        for finding in turn.results
        if measured or finding.type not in ("latency", "token-usage")
    ]


@settings(max_examples=60, deadline=None)
@given(TOLD)
def test_a_conversation_that_was_held_live_is_reviewed_alike(told: Told) -> None:
    live = hold(told)
    again = review(told, RecordedConversation("c", [turn.model_copy() for turn in live.turns]))
    assert [findings(turn) for turn in again.turns] == [findings(turn) for turn in live.turns]
    assert again.verdict.model_dump() == live.verdict.model_dump()
    assert again.metrics == live.metrics
    early = live.ended_by in ("failure", "success")
    assert again.ended_at is None
    if early and not any(finding.type == "only-at-the-end" for finding in live.turns[-1].results):
        assert again.ended_by == live.ended_by


@settings(max_examples=60, deadline=None)
@given(TOLD)
def test_past_the_end_of_a_live_run_every_turn_is_judged_and_what_came_before_stays(told: Told) -> None:
    live, again = hold(told), review(told, told.whole)
    held = len(live.turns)
    assert len(again.turns) == len(told.replies)
    for mine, theirs in zip(again.turns[: held - 1], live.turns[: held - 1], strict=True):
        assert findings(mine, measured=False) == findings(theirs, measured=False)
    gone_on = held < len(told.replies)
    assert (again.ended_at == held) if gone_on else (again.ended_at is None)
    if gone_on:
        assert again.ended_by == live.ended_by
        always = [one for one in again.turns[held - 1].results if one.name in ("never bad", "never odd")]
        assert [one.success for one in always] == [
            one.success for one in live.turns[-1].results if one.name in ("never bad", "never odd")
        ]
    bad = any("bad" in reply for reply in told.replies) and CHECKS[0] in told.checks
    if bad:
        assert again.outcome == "fail", "a review judges the whole conversation"
