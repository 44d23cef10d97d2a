"""Whether the response matches a pattern, or keeps clear of one."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pydantic import Field

from ...base.text import cut
from ..contract import EvaluationResult, EvaluatorContext, Gate
from ..criteria import Name
from ..definition import EvaluatorConfig, define_evaluator
from ..patterns import Pattern, compile_pattern
from .text import ruled

_LONGEST_QUOTE = 200


class RegexConfig(EvaluatorConfig):
    """The pattern, and whether it must or must not match."""

    pattern: str = Field(
        description=r"The pattern, in RE2 syntax; \w, \d and \b know ASCII only, \pL stands for any letter"
    )
    flags: str = Field(
        "", description="i ignores case, m lets ^ and $ match at lines, s lets . match newlines"
    )
    must_match: bool = Field(True, description="Whether the pattern must match; false means it must not")
    criterion_name: Name | None = Field(
        None, description="The criterion to score; without one the result stands for itself"
    )

    @cached_property
    def compiled(self) -> Pattern:
        return compile_pattern(self.pattern, self.flags)

    def model_post_init(self, context: Any, /) -> None:
        _ = self.compiled


def _gate(config: RegexConfig | None) -> Gate:
    return "eventually" if config is None or config.must_match else "always"


def _inline(config: RegexConfig) -> bool:
    return config.compiled.linear


@define_evaluator(type="regex", label="Regex Match", gate=_gate, inline=_inline)
def regex(ctx: EvaluatorContext[RegexConfig]) -> EvaluationResult | list[EvaluationResult]:
    """The response matches a pattern, or does not when it must not."""
    config = ctx.config
    found = config.compiled.find(ctx.response)
    return ruled(
        ctx,
        (found is not None) == config.must_match,
        match_reason(config.compiled, found),
        criterion_name=config.criterion_name,
        metadata={} if found is None else {"match": cut(found, _LONGEST_QUOTE)},
    )


def match_reason(pattern: Pattern, found: str | None) -> str:
    """What was found, for a reader."""
    if found is None:
        return f"no match for /{cut(pattern.source, _LONGEST_QUOTE)}/"
    return f"/{cut(pattern.source, _LONGEST_QUOTE)}/ matches {cut(found, _LONGEST_QUOTE)!r}"
