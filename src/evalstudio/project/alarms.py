"""What comes of monitors: alarms, and what each made of a conversation."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from ..base.times import now
from ..evaluators.results import SENT
from .entities import Moment, new_id

AlarmKind = Literal["rate", "errors", "unasserted"]
Delivery = Literal["none", "pending", "delivered", "failed"]
# What a conversation came to for a monitor: an outcome of a run, or that it was not judged at all.
NOT_JUDGED = "not-judged"


class Alarm(BaseModel):
    """A rate that left its band, or conversations without a verdict.

    It ends when the rate or the verdicts are back, or the monitor is given another band.
    """

    model_config = SENT

    id: str = Field(default_factory=new_id)
    monitor_id: str
    monitor_name: str
    kind: AlarmKind = Field(description="The pass rate fell, errors rose, or nothing is asserted any more")
    created_at: Moment = Field(default_factory=now)
    ended_at: Moment | None = None
    acknowledged_at: Moment | None = None
    text: str = Field(description="What happened, in words")
    passed: int = Field(description="Of those since the change: passed, or without an error")
    scored: int = Field(description="How many came in since the change is thought to have begun")
    edge: float = Field(description="The lower edge of the band it left; 0 where nothing is asserted")
    since: Moment | None = Field(default=None, description="When the first of them took place")
    run_ids: list[str] = Field(
        default_factory=list[str],
        description="The newest among them that failed, errored or are unasserted",
    )
    delivery: Delivery = Field(default="none", description="What became of the webhook")
    tries: int = 0
    delivery_error: str | None = None


class ConversationReview(BaseModel):
    """What a monitor made of a conversation."""

    model_config = SENT

    monitor_id: str
    monitor_name: str
    outcome: str = Field(description="pass, fail, error, unasserted, or not-judged")
    reason: str
    revision: int = Field(description="Of which revision; an earlier one is judged again")
    run_id: str | None = Field(description="The conversation as it was judged")
