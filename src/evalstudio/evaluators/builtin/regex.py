"""Whether the response matches a pattern, or keeps clear of one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from time import perf_counter
from typing import Any

from pydantic import Field

from ...base.text import cut
from ..contract import EvaluatorContext, Gate, TurnFacts
from ..definition import EvaluatorConfig, define_evaluator
from ..patterns import LONGEST_QUOTE, SECONDS, Pattern, compile_pattern, matches_any_text
from .look_alikes import has_look_alikes, skeleton
from .text import Answers, CriterionName, Graded, Scope, ruled, scoped_texts, undisguised


class RegexConfig(EvaluatorConfig):
    """The pattern, and whether it must or must not match."""

    pattern: str = Field(
        description=r"The pattern, in RE2 syntax; \w, \d and \b know ASCII only, \pL stands for any letter"
    )
    flags: str = Field(
        "", description="i ignores case, m lets ^ and $ match at lines, s lets . match newlines"
    )
    must_match: bool = Field(True, description="Whether the pattern must match; false means it must not")
    scope: Scope = "turn"
    criterion_name: CriterionName = None

    @cached_property
    def compiled(self) -> Pattern:
        return checked_pattern(self.pattern, self.flags, must_match=self.must_match)

    @cached_property
    def answers(self) -> Answers:
        return Answers()

    def model_post_init(self, context: Any, /) -> None:
        _ = self.compiled


def checked_pattern(source: str, flags: str, *, must_match: bool) -> Pattern:
    """A compiled pattern that can tell texts apart, or ``ValueError`` saying why it cannot."""
    if not source.strip():
        raise ValueError(r"pattern must not be blank; write \s for a blank")
    pattern = compile_pattern(source, flags)
    if must_match and matches_any_text(pattern):
        raise ValueError(
            "pattern matches any text, an empty one too, so this check would always pass; "
            "ask for at least one character (+ instead of *), or anchor it with ^ and $"
        )
    return pattern


def _gate(config: RegexConfig | None) -> Gate:
    return "eventually" if config is None or config.must_match else "always"


def _work(config: RegexConfig, facts: TurnFacts) -> float:
    return facts.size() * config.compiled.steps


@define_evaluator(
    type="regex",
    label="Regex Match",
    gate=_gate,
    inline=lambda config: config.compiled.linear,
    work=_work,
)
def regex(ctx: EvaluatorContext[RegexConfig]) -> Graded:
    """What the agent says matches a pattern, or does not when it must not."""
    config = ctx.config
    seconds, forbids = ctx.facts.limits.pattern_seconds, not config.must_match
    texts = scoped_texts(ctx, config.scope, forbids=forbids)
    match = first_match(config.compiled, texts, seconds, hidden=forbids)
    quote = None if match is None else cut(match, LONGEST_QUOTE)
    made = config.answers.made(ctx)
    return made.get(quote) or Answers.keep(made, quote, _answer(ctx, quote))


def _answer(ctx: EvaluatorContext[RegexConfig], quote: str | None) -> Graded:
    config = ctx.config
    reason = match_reason(config.compiled, quote)
    if quote is None:
        return ruled(ctx, not config.must_match, reason)
    return ruled(ctx, config.must_match, reason, match=quote)


def first_match(
    pattern: Pattern, texts: Sequence[str], seconds: float = SECONDS, *, hidden: bool
) -> str | None:
    """The first piece of any of the texts that matches; ``hidden`` looks behind disguises as well.

    The time limit is one for all of them.
    """
    if hidden:
        plain = [undisguised(text) for text in texts if not text.isascii()]
        texts = [*texts, *plain, *(skeleton(text) for text in texts if has_look_alikes(text))]
    if len(texts) == 1:
        return pattern.find(texts[0], seconds)
    start = perf_counter()
    for text in texts:
        match = pattern.find(text, seconds, seconds - (perf_counter() - start))
        if match is not None:
            return match
    return None


def match_reason(pattern: Pattern, quote: str | None) -> str:
    """What was found, for a reader."""
    return f"no match for {pattern.quoted}" if quote is None else f"{pattern.quoted} matches {quote!r}"
