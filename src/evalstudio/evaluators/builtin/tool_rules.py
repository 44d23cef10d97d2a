"""The rules of tool usage: what they may say, and what one rule finds in the calls of its tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import jsonschema_rs
from pydantic import AliasChoices, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from ...messages import ToolCall
from ...schemas import compile_schema, path_text
from ..criteria import Name
from ..definition import EvaluatorConfig
from .comparing import Match, first_difference
from .json_schema import broken

Outcome = str | Exception | None


class ToolRule(EvaluatorConfig):
    """What is expected of one tool."""

    tool: Name = Field(
        validation_alias=AliasChoices("tool", "expectedToolName"),
        description="The tool's name, upper and lower case as the agent writes it",
    )
    required: bool = Field(
        False,
        validation_alias=AliasChoices("required", "isRequired"),
        description="Whether the tool must be called; one that need not be and is not called is skipped",
    )
    forbidden: bool = Field(False, description="Whether the tool must not be called")
    min_calls: int | None = Field(None, ge=0, description="The fewest calls that pass")
    max_calls: int | None = Field(None, ge=0, description="The most calls that pass")
    order: int | None = Field(
        None, description="A place among the other rules with an order: calls of a lower place come before"
    )
    arguments: dict[str, Any] | None = Field(None, description="Argument values that a call must have")
    match: Match = Field("subset", description="subset lets a call have more arguments, exact does not")
    arguments_schema: dict[str, Any] | bool | None = Field(
        None, description="A JSON Schema that a call's arguments must fit"
    )
    argument_checks: SkipJsonSchema[Callable[[Any], Any] | None] = Field(
        None,
        exclude=True,
        description="In code only: a function of the arguments that says if they are valid",
    )
    which: Literal["any", "all", "first", "last"] = Field(
        "any", description="Which of the tool's calls must have the arguments asked for"
    )
    criterion_name: Name | None = Field(
        None, description="The criterion to score; without one the result stands for itself"
    )

    @cached_property
    def validator(self) -> jsonschema_rs.Validator | None:
        return None if self.arguments_schema is None else compile_schema(self.arguments_schema)

    def model_post_init(self, context: Any, /) -> None:
        _ = self.validator

    @model_validator(mode="after")
    def _consistent(self) -> ToolRule:
        least = max(self.min_calls or 0, 1 if self.required else 0)
        if self.forbidden and (least > 0 or self.order is not None):
            asked = "required" if self.required else "minCalls" if least else "order"
            raise ValueError(f"{self.tool} cannot be forbidden and have {asked}")
        if self.max_calls is not None and least > self.max_calls:
            raise ValueError(f"{self.tool} cannot have at least {least} calls and at most {self.max_calls}")
        return self

    @property
    def competes(self) -> bool:
        """Whether the rule wants calls for itself alone."""
        return self.arguments is not None and self.which == "any" and not self.forbidden

    def check(self, call: ToolCall) -> Outcome:
        """What is wrong with a call, nothing if it fits, or the error that kept this from being told."""
        if self.arguments is None and self.validator is None and self.argument_checks is None:
            return None
        try:
            return self._wrong_with(call)
        except Exception as error:
            return error

    def _wrong_with(self, call: ToolCall) -> str | None:
        try:
            given = _arguments(call)
        except ValueError as error:
            # What cannot be read may be just the call that is forbidden.
            return None if self.forbidden else str(error)
        if self.arguments is not None and (
            difference := first_difference(self.arguments, given, self.match, ("arguments",))
        ):
            return f"{path_text(difference.path)}: {difference}"
        if self.validator is not None and (found := broken(self.validator, given)):
            return "arguments do not fit the schema: " + "; ".join(found)
        if self.argument_checks is not None:
            # A fresh copy: a check that changes its arguments changes nobody else's.
            return read_check(self.argument_checks(_arguments(call)))
        return None


def _arguments(call: ToolCall) -> Any:
    given = call.arguments()
    return {} if given is None else given


def read_check(answer: Any) -> str | None:
    """What an argument check found wrong, in any of the forms in which it may say so."""
    valid, reason = answer, None
    if isinstance(answer, Mapping):
        fields = cast(Mapping[str, Any], answer)
        valid, reason = fields.get("isValid", fields.get("valid")), fields.get("reason")
    elif isinstance(answer, tuple) and len(cast(tuple[Any, ...], answer)) == 2:
        valid, reason = cast(tuple[Any, Any], answer)
    if not isinstance(valid, bool):
        kind = type(cast(object, answer)).__name__
        raise TypeError(f'argumentChecks returned a {kind}; expected a bool, {{"valid", "reason"}} or a pair')
    return None if valid else str(reason or "the argument check failed")


@dataclass(frozen=True, slots=True)
class Reading:
    """The calls of a rule's tool, by their number in the conversation, and what each came to."""

    rule: ToolRule
    outcomes: dict[int, Outcome]

    @property
    def calls(self) -> list[int]:
        return list(self.outcomes)

    @property
    def fitting(self) -> list[int]:
        return [call for call, outcome in self.outcomes.items() if outcome is None]

    @property
    def counted(self) -> list[int]:
        """The calls that minCalls and maxCalls speak of."""
        return self.fitting if self.rule.which == "any" else self.calls

    @property
    def asked(self) -> list[int]:
        """The calls that must have the arguments asked for, or one of them for ``any``."""
        match self.rule.which:
            case "first":
                return self.calls[:1]
            case "last":
                return self.calls[-1:]
            case _:
                return self.calls

    def misfit(self) -> Outcome:
        """Why the calls do not have the arguments asked for."""
        outcomes = [self.outcomes[call] for call in self.asked]
        wrong = [outcome for outcome in outcomes if isinstance(outcome, str)]
        errors = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        if self.rule.which == "any":
            return None if None in outcomes else (errors or wrong)[0]
        return (wrong or errors or [None])[0]


def read_calls(rule: ToolRule, calls: Sequence[ToolCall]) -> Reading:
    return Reading(
        rule, {number: rule.check(call) for number, call in enumerate(calls) if call.name == rule.tool}
    )
