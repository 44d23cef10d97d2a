"""Whether the agent left the world as it should be: its end state compared with an expected one."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from ...base.differences import Difference, Match, first_difference
from ...base.paths import PathText, follow, read_path
from ...base.problems import path_text
from ..contract import EvaluatorContext, NotAvailable
from ..definition import EvaluatorConfig, define_evaluator
from .text import CriterionName, Graded, ruled


class StateMatchConfig(EvaluatorConfig):
    """The state expected in the end, whole or in part."""

    expected: Any = Field(description="The expected state, any JSON", examples=[{"status": "booked"}])
    match: Match = Field(
        "subset", description="subset lets objects hold more than expected, exact does not; lists are as long"
    )
    path: PathText = Field(
        "", description='Where in the state to look, such as "bookings[0]"; empty for all of it'
    )
    criterion_name: CriterionName = None

    @model_validator(mode="after")
    def _something(self) -> StateMatchConfig:
        if self.expected == {} and self.match == "subset" and not self.path:
            raise ValueError("expected {} is part of any state; say what it must hold, or match exact")
        return self


@define_evaluator(type="state-match", gate="finally", inline=True)
def state_match(ctx: EvaluatorContext[StateMatchConfig]) -> Graded:
    """The agent's end state is the expected one."""
    config = ctx.config
    actual = follow(_state(ctx), read_path(config.path))
    difference = first_difference(config.expected, actual, config.match)
    reason = _reason(config.path, difference) if difference else "the state is as expected"
    return ruled(ctx, difference is None, reason)


def _state(ctx: EvaluatorContext[Any]) -> Any:
    state = ctx.state if ctx.state is not None else ctx.context.get("state")
    if state is None:
        reason = "the connector has no state() and the context no state"
        raise NotAvailable(f"there is no end state to compare: {reason}")
    return state


def _reason(path: str, difference: Difference) -> str:
    place = path_text(difference.path)
    between = "." if path and place and not place.startswith("[") else ""
    where = path + between + place
    return f"the state differs at {where}: {difference}" if where else f"the state differs: {difference}"
