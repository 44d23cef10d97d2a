"""Whether the agent used its tools as it should, over the whole conversation. One result per rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import AliasChoices, Field, ValidationError, field_validator

from ...messages import ToolCall
from ..contract import EvaluationResult, EvaluatorContext, NotAvailable
from ..definition import EvaluatorConfig, define_evaluator
from .grading import errored, ruled
from .tool_matching import Claim, place
from .tool_rules import Reading, ToolRule, read_calls


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


@define_evaluator(type="tool-usage", gate="finally", inline=_inline)
def tool_usage(ctx: EvaluatorContext[ToolUsageConfig]) -> list[EvaluationResult]:
    """The agent calls the tools it should, as often, in the order and with the arguments it should."""
    rules = ctx.config.rules
    try:
        calls = ctx.all_tool_calls if ctx.config.source == "messages" else _calls_in_context(ctx)
    except NotAvailable as error:
        return [errored(error, criterion_name=rule.criterion_name) for rule in rules]
    results: list[EvaluationResult] = []
    for rule, verdict in zip(rules, judge(rules, calls), strict=True):
        results += _result(ctx, rule, verdict)
    return results


def _calls_in_context(ctx: EvaluatorContext[Any]) -> list[ToolCall]:
    given = ctx.context.get("toolCalls")
    if given is None:
        return []
    if not isinstance(given, list | tuple):
        raise NotAvailable("context.toolCalls is not a list of calls")
    return [_call(entry, place) for place, entry in enumerate(cast(Sequence[object], given))]


def _call(entry: object, place: int) -> ToolCall:
    try:
        return ToolCall.model_validate(dict(cast(Any, entry)) if isinstance(entry, Mapping) else entry)
    except (ValidationError, TypeError):
        raise NotAvailable(f"context.toolCalls[{place}] is not a call; it needs a toolName") from None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one rule comes to: holds or not, skipped where that is open, or an error."""

    holds: bool | None
    reason: str
    calls: int
    error: Exception | None = None


def judge(rules: Sequence[ToolRule], calls: Sequence[ToolCall]) -> list[Verdict]:
    """Each rule by itself first, then those that hold against each other: calls of their own, in order."""
    readings = [read_calls(rule, calls) for rule in rules]
    verdicts = [_alone(reading) for reading in readings]
    claims = [
        _claim(number, reading)
        for number, reading in enumerate(readings)
        if verdicts[number].holds
        and reading.calls
        and (reading.rule.competes or reading.rule.order is not None)
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
        verdicts[claim.rule] = Verdict(False, reason, verdicts[claim.rule].calls)
    return verdicts


def _claim(number: int, reading: Reading) -> Claim:
    rule = reading.rule
    pinned = rule.which in ("first", "last")
    calls = reading.asked if pinned else reading.counted
    need = 1 if pinned else max(1, rule.min_calls or 0)
    return Claim(number, calls, need, rule.competes, rule.order)


def _alone(reading: Reading) -> Verdict:
    """A rule as if there were no others."""
    rule, count = reading.rule, len(reading.calls)
    called = f"{rule.tool} was called {_times(count)}" if count else f"{rule.tool} was not called"
    if rule.forbidden:
        return _forbidden(reading, called)
    if not count:
        if rule.required or rule.min_calls:
            return Verdict(False, called, 0)
        return Verdict(None if rule.max_calls is None else True, called, 0)
    misfit = reading.misfit()
    if isinstance(misfit, Exception):
        return Verdict(False, called, count, misfit)
    if misfit is not None:
        return Verdict(False, f"{called}, but {misfit}", count)
    return _counted(reading, called)


def _forbidden(reading: Reading, called: str) -> Verdict:
    count, outcomes = len(reading.calls), list(reading.outcomes.values())
    if reading.fitting:
        return Verdict(False, f"{called} though it is forbidden", count)
    if errors := [outcome for outcome in outcomes if isinstance(outcome, Exception)]:
        return Verdict(False, called, count, errors[0])
    return Verdict(True, f"{called}, never with the forbidden arguments" if count else called, count)


def _counted(reading: Reading, called: str) -> Verdict:
    rule, number, count = reading.rule, len(reading.counted), len(reading.calls)
    fitting = called if number == count else f"{called}, {number} with the arguments asked for"
    if rule.min_calls is not None and number < rule.min_calls:
        return Verdict(False, f"{fitting}, fewer than {rule.min_calls}", count)
    if rule.max_calls is not None and number > rule.max_calls:
        return Verdict(False, f"{fitting}, more than {rule.max_calls}", count)
    return Verdict(True, fitting, count)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _result(
    ctx: EvaluatorContext[ToolUsageConfig], rule: ToolRule, verdict: Verdict
) -> list[EvaluationResult]:
    name, metadata = rule.criterion_name, {"tool": rule.tool, "calls": verdict.calls}
    if verdict.error is not None:
        return [errored(verdict.error, criterion_name=name, metadata=metadata)]
    if verdict.holds is None:
        if name is not None and ctx.criterion(name) is None:
            return []
        return [EvaluationResult(True, None, verdict.reason, metadata, name, skipped=True)]
    result = ruled(ctx, verdict.holds, verdict.reason, criterion_name=name, metadata=metadata)
    return result if isinstance(result, list) else [result]
