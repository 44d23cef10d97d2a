"""Monitors: standing reviews of sampled production conversations, as people write them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field, model_validator

from ..base.paths import MISSING, PathText, lookup
from ..conversation.definitions import Definition, EvaluatorUse, Scenario
from ..evaluators.criteria import EvaluationCriteria, Name, Text, check_unique

Scalar = str | bool | int | float
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
# A band that reaches up to 1 would take one failure for proof.
HIGHEST_RATE = 0.999
_DISABLE = "set enabled to false to switch the monitor off"


class AttributeCondition(Definition):
    """What an attribute of a conversation must be: one of ``equals``, ``in``, ``prefix`` and ``exists``."""

    attribute: Annotated[PathText, Field(min_length=1)] = Field(
        description="Its name as the telemetry has it, or a path into it"
    )
    equals: Scalar | None = Field(default=None, description="It is this value")
    one_of: list[Scalar] | None = Field(
        default=None, alias="in", min_length=1, description="It is one of these values"
    )
    prefix: str | None = Field(default=None, min_length=1, description="It is a text that begins so")
    exists: bool | None = Field(default=None, description="It is there, or (false) it is not")

    @model_validator(mode="after")
    def _one_test(self) -> AttributeCondition:
        tests = [self.equals, self.one_of, self.prefix, self.exists]
        if sum(test is not None for test in tests) != 1:
            raise ValueError("give one of equals, in, prefix and exists")
        return self

    def holds(self, attributes: Mapping[str, Any]) -> bool:
        """Whether it holds of these attributes; of one that is missing only ``exists: false`` does."""
        value = lookup(attributes, self.attribute)
        if self.exists is not None:
            return (value is not MISSING) == self.exists
        if value is MISSING:
            return False
        if self.prefix is not None:
            return isinstance(value, str) and value.startswith(self.prefix)
        accepted = self.one_of if self.one_of is not None else [cast(Scalar, self.equals)]
        return any(_same(value, one) for one in accepted)


def _same(value: Any, other: Scalar) -> bool:
    """Equal and of one kind: true is not 1."""
    return isinstance(value, bool) == isinstance(other, bool) and value == other


class Band(Definition):
    """Where the pass rate is expected, and when it counts as having left."""

    expected: Share | None = Field(
        default=None, description="The pass rate that is expected; learnt from the first ones if not given"
    )
    learn_from: int = Field(
        default=500, ge=20, le=100_000, description="How many conversations the expected rate is learnt from"
    )
    min_effect: float = Field(
        default=0.05, ge=0.005, le=0.9, description="The smallest drop that is looked for"
    )
    max_error_rate: float = Field(
        default=0.05, ge=0.001, le=0.9, description="The share of errors that is still expected"
    )
    false_alarms_per_month: float = Field(
        default=0.1, gt=0, le=100, description="The most false alarms in 30 days, on average, of either kind"
    )

    @model_validator(mode="after")
    def _leaves_room(self) -> Band:
        if self.expected is not None and self.expected <= self.min_effect:
            raise ValueError(
                f"a rate of {self.expected:g} cannot drop by {self.min_effect:g}; lower minEffect, or raise "
                "expected"
            )
        return self


class Webhook(Definition):
    """Where alarms are posted to."""

    url: Annotated[str, Field(min_length=1, max_length=2000)] = Field(description="An http or https address")
    secret: str | None = Field(
        default=None, min_length=8, max_length=2000, description="Signs what is posted; kept sealed"
    )

    @model_validator(mode="after")
    def _is_web_address(self) -> Webhook:
        if not self.url.startswith(("http://", "https://", "${")):
            raise ValueError("the url of a webhook begins with http:// or https://")
        return self


def _asks_for_some(share: float) -> float:
    if share == 0:
        raise ValueError(f"0 would look at no conversation; {_DISABLE}")
    return share


def _allows_some(calls: int | None) -> int | None:
    if calls == 0:
        raise ValueError(f"0 would let no judge look at a conversation; {_DISABLE}")
    return calls


class AlarmSettings(Definition):
    """Who is told of an alarm. It is on the monitor's page in any case."""

    webhook: Webhook | None = Field(default=None, description="Posted to this address, signed")
    log: bool = Field(default=True, description="A line in the server's log")
    quiet_hours: float = Field(
        default=24,
        ge=0,
        le=8760,
        description="After the rate is back, so long no further alarm of the same kind is raised",
    )
    unasserted_in_a_row: int = Field(
        default=50,
        ge=1,
        le=1_000_000,
        description="So many conversations in a row without a verdict are an alarm",
    )


class Monitor(Definition):
    """A standing review of sampled production conversations."""

    name: Name
    description: str | None = Field(default=None, description="What is watched, in a few words")
    enabled: bool = Field(default=True, description="Whether conversations are reviewed")
    filter: list[AttributeCondition] = Field(
        default_factory=list[AttributeCondition],
        max_length=50,
        description="Conversations of which all of these hold",
    )
    sampling_rate: Annotated[Share, AfterValidator(_asks_for_some)] = Field(
        default=1.0, description="The share of them that is reviewed, chosen by a hash of their ids"
    )
    scenario_ids: list[str] = Field(
        default_factory=list[str], max_length=1, description="Judged as this scenario judges"
    )
    success_criteria: Text | None = Field(default=None, description="When a conversation has succeeded")
    failure_criteria: Text | None = Field(default=None, description="When a conversation has failed")
    evaluators: list[EvaluatorUse] = Field(default_factory=list[EvaluatorUse])
    criteria: list[EvaluationCriteria] = Field(default_factory=list[EvaluationCriteria])
    judge_calls_per_day: Annotated[int | None, AfterValidator(_allows_some)] = Field(
        default=None,
        ge=0,
        le=100_000_000,
        description="Calls of judges in one UTC day; what comes after that is not judged",
    )
    retention_days: int = Field(
        default=90, ge=1, le=3650, description="How long reviews are kept, with what was said"
    )
    band: Band = Field(default_factory=Band)
    alarm: AlarmSettings = Field(default_factory=AlarmSettings)

    @model_validator(mode="after")
    def _is_judged(self) -> Monitor:
        check_unique(self.criteria)
        own = self.success_criteria or self.failure_criteria or self.evaluators or self.criteria
        if self.scenario_ids and own:
            raise ValueError("a monitor judges as a scenario does, or by evaluators of its own, not both")
        if not self.scenario_ids and not own:
            raise ValueError("nothing judges these conversations; name a scenario, or add evaluators")
        return self

    def covers(self, attributes: Mapping[str, Any]) -> bool:
        return all(condition.holds(attributes) for condition in self.filter)

    def samples(self, conversation_id: str) -> bool:
        """Whether a conversation is among those reviewed: by its id alone, so always the same."""
        digest = hashlib.sha256(conversation_id.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8]) < self.sampling_rate * 2**64

    def own_scenario(self) -> Scenario:
        """What judges a conversation where the monitor names no scenario."""
        return Scenario(
            name=self.name,
            success_criteria=self.success_criteria,
            failure_criteria=self.failure_criteria,
            evaluators=list(self.evaluators),
            criteria=self.criteria,
            stop_on_failure=False,
        )
