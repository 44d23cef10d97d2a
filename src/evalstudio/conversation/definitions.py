"""Scenarios and personas as people write them, in Python, in files or in the web UI."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    InstanceOf,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema

from ..base.strict_values import StrictValues
from ..evaluators.contract import Gate, Reduce
from ..evaluators.criteria import EvaluationCriteria, Name, Text, check_unique
from ..evaluators.definition import Entry, EvaluatorDefinition
from ..messages import Message, MessageList

FailureMode = Literal["on_max_messages", "every_turn"]


class Definition(StrictValues):
    """The base of what people define: camelCase in JSON, unknown keys refused."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        validate_assignment=True,
        # Nothing is less than NaN, and everything is less than infinity.
        allow_inf_nan=False,
    )


class Persona(Definition):
    """Who the simulated user is."""

    name: Name
    description: str | None = Field(default=None, description="Who this is, in a few words")
    system_prompt: str | None = Field(default=None, description="How this person speaks and behaves")
    headers: dict[str, str] = Field(
        default_factory=dict[str, str], description="Sent to the agent with every call, over the connector's"
    )
    connector_ids: list[str] = Field(
        default_factory=list[str],
        description="The connectors that secret headers may go to; others never get them",
    )
    knows: str | None = Field(
        default=None, description="What only this person knows; never shown to judge or agent"
    )
    wants: str | None = Field(
        default=None, description="What this person is after; never shown to judge or agent"
    )


class Case(Definition):
    """One row of values for a scenario's placeholders."""

    name: str | None = None
    vars: dict[str, Any] = Field(default_factory=dict[str, Any], description="Values for {{placeholders}}")
    ground_truth: Any = Field(default=None, description="The reference for this case")
    context: dict[str, Any] = Field(default_factory=dict[str, Any])


class EvaluatorUse(Definition):
    """An evaluator on a scenario."""

    type: Name = Field(description="A built-in type or a plugin's")
    config: dict[str, Any] = Field(default_factory=dict[str, Any], description="Settings of this type")
    gate: Gate | None = Field(default=None, description="When it must hold; the type's own gate by default")
    name: Name | None = Field(default=None, description="Its name in results")
    reduce: Reduce | None = Field(default=None, description="How a metric is reduced over the turns")


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a message of the script must not be blank")
    return text


ScriptText = Annotated[str, AfterValidator(_not_blank)]
InCode = SkipJsonSchema[InstanceOf[Entry]]


class Scenario(Definition):
    """What is tested: who speaks, what about, and what must hold."""

    name: Name
    instructions: str | None = Field(default=None, description="What the simulated user is doing here")
    messages: MessageList = Field(default_factory=list[Message], description="What was said before")
    script: list[ScriptText] = Field(default_factory=list[str], description="Fixed user messages, in order")
    max_messages: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="User messages and replies in this run; what the script needs, or 10, if not given",
    )
    success_criteria: Text | None = Field(default=None, description="When the conversation has succeeded")
    failure_criteria: Text | None = Field(default=None, description="When the conversation has failed")
    failure_criteria_mode: FailureMode = Field(
        default="on_max_messages", description="Whether a met failure criterion ends the conversation at once"
    )
    evaluators: list[EvaluatorUse | InCode] = Field(default_factory=list[EvaluatorUse | InCode])
    criteria: list[EvaluationCriteria] = Field(default_factory=list[EvaluationCriteria])
    persona_ids: list[str] = Field(default_factory=list[str])
    cases: list[Case] | str = Field(
        default_factory=list[Case], description="Rows of values, or a CSV or JSONL file of them"
    )
    ground_truth: Any = Field(default=None, description="The reference evaluators compare with")
    context: dict[str, Any] = Field(default_factory=dict[str, Any], description="Data evaluators may look at")
    stop_on_failure: bool = Field(default=True, description="End the conversation at the first failure")
    tags: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list[str])

    @field_validator("evaluators", mode="before")
    @classmethod
    def _definitions_as_entries(cls, value: object) -> object:
        if not isinstance(value, list):
            return value
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return [item.use() if isinstance(item, EvaluatorDefinition) else item for item in items]

    @field_validator("success_criteria", "failure_criteria", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        """An emptied field takes the criteria away; blanks in it look like criteria and are none."""
        return None if value == "" else value

    @model_validator(mode="after")
    def _is_judged(self) -> Scenario:
        check_unique(self.criteria)
        judged = self.success_criteria or self.failure_criteria or self.criteria or self.evaluators
        if not judged:
            raise ValueError("nothing judges this scenario; add evaluators, or success or failure criteria")
        return self
