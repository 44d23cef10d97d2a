"""Whether the agent used its tools as it should, over the whole conversation. One result per rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, cast

import jsonschema_rs
from pydantic import AliasChoices, Field, ValidationError, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from ...base.differences import Match, first_difference
from ...base.lazy_dataclass import dataclass
from ...base.problems import path_text
from ...base.schemas import compile_schema, schema_cost
from ...messages import ToolCall, calls_of_results
from ..contract import EvaluationResult, EvaluatorContext, NotAvailable, TurnFacts
from ..criteria import Name
from ..definition import EvaluatorConfig, define_evaluator
from .json_schema import broken, schema_work
from .look_alikes import skeleton
from .text import CriterionName, as_list, characters_at, errored, ruled
from .tool_matching import Claim, place

_MOST_NAMED = 3


class ToolUsageConfig(EvaluatorConfig):
    """The rules for tools, and where the calls are found."""

    rules: list[ToolRule] = Field(min_length=1, description="The rules; each gives a result of its own")
    source: Literal["messages", "context"] = Field(
        "messages",
        validation_alias=AliasChoices("source", "toolDataSource"),
        description="Where the calls are: in the agent's messages, or in the list context.toolCalls",
    )

    @field_validator("source", mode="before")
    @classmethod
    def _other_name(cls, value: object) -> object:
        return "messages" if value == "messageHistory" else value


def _inline(config: ToolUsageConfig) -> bool:
    return all(rule.argument_checks is None for rule in config.rules)


def _work(config: ToolUsageConfig, facts: TurnFacts) -> float:
    """Each rule reads the arguments of the calls; rules that compete or have an order are weighed up."""
    in_context = config.source == "context"
    characters = characters_at("context.toolCalls", facts) if in_context else facts.conversation_size()
    needs = sum(
        max(1, rule.min_calls or 0) for rule in config.rules if rule.competes or rule.order is not None
    )
    schemas = sum(schema_work(rule.schema_cost, characters) for rule in config.rules if rule.validator)
    return characters * len(config.rules) + needs**2 + schemas


@define_evaluator(type="tool-usage", gate="finally", inline=_inline, work=_work)
def tool_usage(ctx: EvaluatorContext[ToolUsageConfig]) -> list[EvaluationResult]:
    """The agent calls the tools it should, as often, in the order and with the arguments it should."""
    rules = ctx.config.rules
    in_messages = ctx.config.source == "messages"
    try:
        calls = ctx.all_tool_calls if in_messages else _calls_in_context(ctx)
    except NotAvailable as error:
        return [errored(error, rule.criterion_name) for rule in rules]
    unseen = calls_of_results(ctx.messages) if in_messages else []
    outcomes = zip(rules, judge(rules, calls, unseen), strict=True)
    return [result for rule, outcome in outcomes for result in _results(ctx, rule, outcome)]


def _calls_in_context(ctx: EvaluatorContext[Any]) -> list[ToolCall]:
    calls = ctx.context.get("toolCalls")
    if calls is None:
        raise NotAvailable("there is no list context.toolCalls to look for calls in")
    if not isinstance(calls, list | tuple):
        raise NotAvailable("context.toolCalls is not a list of calls")
    return [_call(entry, place) for place, entry in enumerate(cast(Sequence[object], calls))]


def _call(entry: object, place: int) -> ToolCall:
    try:
        return ToolCall.model_validate(dict(cast(Any, entry)) if isinstance(entry, Mapping) else entry)
    except (ValidationError, TypeError):
        raise NotAvailable(f"context.toolCalls[{place}] is not a call; it needs a toolName") from None


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """What one rule comes to: holds or not, skipped where that is open, or an error."""

    holds: bool | None
    reason: str
    calls: int
    error: Exception | None = None


def judge(
    rules: Sequence[ToolRule], calls: Sequence[ToolCall], unseen: Sequence[ToolCall] = ()
) -> list[RuleOutcome]:
    """Each rule by itself first, then those that hold against each other: calls of their own, in order.

    ``unseen`` calls, of which only the results are there, break what limits a tool and satisfy nothing.
    """
    disguises = _disguises(rules, [*calls, *unseen])
    readings = [
        Reading(rule, {number: rule.check(call) for number, call in looked_at if call.name in names}, others)
        for rule, others in zip(rules, disguises, strict=True)
        for names in [{rule.tool, *others}]
        for looked_at in [list(enumerate([*calls, *unseen] if rule.only_limits else calls))]
    ]
    outcomes = [_alone(reading) for reading in readings]
    claims = [
        _claim(number, reading)
        for number, (reading, rule) in enumerate(zip(readings, rules, strict=True))
        if outcomes[number].holds and reading.calls and (rule.competes or rule.order is not None)
    ]
    placed, late = place(claims)
    for claim in claims:
        tool = rules[claim.rule].tool
        if claim.rule in late:
            reason = f"{tool} was not called in its place in the order ({claim.order})"
        elif claim.rule not in placed:
            reason = f"{tool} has no call left for this rule: the ones that fit answer other rules"
        else:
            continue
        outcomes[claim.rule] = RuleOutcome(False, reason, outcomes[claim.rule].calls)
    return outcomes


def _disguises(rules: Sequence[ToolRule], calls: Sequence[ToolCall]) -> list[Sequence[str]]:
    """For each rule that forbids or limits a tool, the other names under which it was called.

    A name that differs in case, blanks or hidden characters only would otherwise get around the rule. One
    that another rule spells out is a tool of its own.
    """
    tools = {rule.tool for rule in rules}
    strange: dict[str, list[str]] = {}
    for name in {call.name for call in calls} - tools:
        strange.setdefault(_bare(name), []).append(name)
    return [sorted(strange.get(_bare(rule.tool), ())) if rule.limits else () for rule in rules]


def _bare(name: str) -> str:
    return "".join(skeleton(name).casefold().split())


def _claim(number: int, reading: Reading) -> Claim:
    rule = reading.rule
    pinned = rule.which in ("first", "last")
    calls = reading.checked if pinned else reading.counted
    need = 1 if pinned else max(1, rule.min_calls or 0)
    return Claim(number, calls, need, rule.competes, rule.order)


def _alone(reading: Reading) -> RuleOutcome:
    """A rule as if there were no others."""
    rule, count = reading.rule, len(reading.calls)
    more = " and others" if len(reading.disguises) > _MOST_NAMED else ""
    named = ", ".join(map(repr, reading.disguises[:_MOST_NAMED])) + more
    spelling = f" as {named}" if named else ""
    called = f"{rule.tool} was called {_times(count)}{spelling}" if count else f"{rule.tool} was not called"
    if rule.forbidden:
        return _forbidden(reading, called)
    if not count:
        if rule.required or rule.min_calls:
            return RuleOutcome(False, called, 0)
        return RuleOutcome(None if rule.max_calls is None else True, called, 0)
    if reading.disguises:
        return RuleOutcome(False, f"{called}: another spelling does not get around maxCalls", count)
    misfit = reading.misfit()
    if isinstance(misfit, Exception):
        return RuleOutcome(False, called, count, misfit)
    if misfit is not None:
        return RuleOutcome(False, f"{called}, but {misfit}", count)
    return _counted(reading, called)


def _forbidden(reading: Reading, called: str) -> RuleOutcome:
    count, outcomes = len(reading.calls), list(reading.outcomes.values())
    if reading.fitting:
        return RuleOutcome(False, f"{called} though it is forbidden", count)
    if errors := [outcome for outcome in outcomes if isinstance(outcome, Exception)]:
        return RuleOutcome(False, called, count, errors[0])
    return RuleOutcome(True, f"{called}, never with the forbidden arguments" if count else called, count)


def _counted(reading: Reading, called: str) -> RuleOutcome:
    rule, number, count = reading.rule, len(reading.counted), len(reading.calls)
    fitting = called if number == count else f"{called}, {number} with the arguments asked for"
    if rule.min_calls is not None and number < rule.min_calls:
        return RuleOutcome(False, f"{fitting}, fewer than {rule.min_calls}", count)
    if rule.max_calls is not None and number > rule.max_calls:
        return RuleOutcome(False, f"{fitting}, more than {rule.max_calls}", count)
    return RuleOutcome(True, fitting, count)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _results(ctx: EvaluatorContext[Any], rule: ToolRule, outcome: RuleOutcome) -> list[EvaluationResult]:
    name, metadata = rule.criterion_name, {"tool": rule.tool, "calls": outcome.calls}
    if outcome.error is not None:
        return [errored(outcome.error, name, **metadata)]
    if outcome.holds is None:
        if name is not None and ctx.criterion(name) is None:
            return []
        return [EvaluationResult(True, None, outcome.reason, metadata, name, skipped=True)]
    return as_list(ruled(ctx, outcome.holds, outcome.reason, rule, **metadata))


Outcome = str | Exception | None


class ToolRule(EvaluatorConfig):
    """What is expected of one tool."""

    tool: Name = Field(
        validation_alias=AliasChoices("tool", "expectedToolName"),
        description="The tool's name, upper and lower case as the agent writes it; one that is forbidden "
        "or has maxCalls is also recognised in other spellings",
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
    criterion_name: CriterionName = None

    @cached_property
    def validator(self) -> jsonschema_rs.Validator | None:
        return None if self.arguments_schema is None else compile_schema(self.arguments_schema)

    @cached_property
    def schema_cost(self) -> int:
        return schema_cost(self.arguments_schema)

    def model_post_init(self, context: Any, /) -> None:
        _ = self.validator

    @model_validator(mode="after")
    def _consistent(self) -> ToolRule:
        least = max(self.min_calls or 0, 1 if self.required else 0)
        if self.forbidden and (least > 0 or self.order is not None):
            setting = "required" if self.required else "minCalls" if least else "order"
            raise ValueError(f"{self.tool} cannot be forbidden and have {setting}")
        if self.max_calls is not None and least > self.max_calls:
            raise ValueError(f"{self.tool} cannot have at least {least} calls and at most {self.max_calls}")
        if self.min_calls == 0 and self.max_calls is None and not self._asks_more:
            raise ValueError(
                f"{self.tool} with minCalls 0 asks for nothing; require it, forbid it, or give more"
            )
        return self

    @property
    def _asks_more(self) -> bool:
        """Whether a rule says anything beside how often its tool is called."""
        if self.required or self.forbidden or self.order is not None or self.validator is not None:
            return True
        return self.arguments is not None or self.argument_checks is not None

    @property
    def limits(self) -> bool:
        """Whether a call too many breaks the rule."""
        return self.forbidden or self.max_calls is not None

    @property
    def only_limits(self) -> bool:
        """Whether no call can make the rule hold."""
        return self.limits and not (self.required or self.min_calls or self.order is not None)

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
            arguments = _arguments(call)
        except ValueError as error:
            # What cannot be read may be just the call that is forbidden.
            return None if self.forbidden else str(error)
        if self.arguments is not None:
            difference = first_difference(self.arguments, arguments, self.match, ("arguments",))
            if difference:
                return f"{path_text(difference.path)}: {difference}"
        if self.validator is not None and (misfit := broken(self.validator, arguments)):
            return f"arguments do not fit the schema: {misfit}"
        if self.argument_checks is not None:
            # A fresh copy: a check that changes its arguments changes nobody else's.
            return read_check(self.argument_checks(_arguments(call)))
        return None


def _arguments(call: ToolCall) -> Any:
    arguments = call.arguments()
    return {} if arguments is None else arguments


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
    disguises: Sequence[str] = ()

    @property
    def calls(self) -> list[int]:
        return list(self.outcomes)

    @property
    def fitting(self) -> list[int]:
        return [call for call, outcome in self.outcomes.items() if outcome is None]

    @property
    def counted(self) -> list[int]:
        """The calls that minCalls and maxCalls count."""
        return self.fitting if self.rule.which == "any" else self.calls

    @property
    def checked(self) -> list[int]:
        """The calls that must have the arguments asked for, or one of them for ``any``."""
        which = self.rule.which
        return self.calls[:1] if which == "first" else self.calls[-1:] if which == "last" else self.calls

    def misfit(self) -> Outcome:
        """Why the calls do not have the arguments asked for."""
        outcomes = [self.outcomes[call] for call in self.checked]
        wrong = [outcome for outcome in outcomes if isinstance(outcome, str)]
        errors = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        if self.rule.which == "any":
            return None if None in outcomes else (errors or wrong)[0]
        return (wrong or errors or [None])[0]
