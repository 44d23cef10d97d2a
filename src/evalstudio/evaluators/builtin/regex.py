"""Whether the response matches a pattern, or keeps clear of one."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pydantic import Field

from ...base.text import cut
from ..contract import EvaluatorContext, Gate
from ..definition import EvaluatorConfig, define_evaluator
from ..patterns import Pattern, compile_pattern
from .text import CriterionName, Graded, ruled

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
    criterion_name: CriterionName = None

    @cached_property
    def compiled(self) -> Pattern:
        return compile_pattern(self.pattern, self.flags)

    def model_post_init(self, context: Any, /) -> None:
        _ = self.compiled


def _gate(config: RegexConfig | None) -> Gate:
    return "eventually" if config is None or config.must_match else "always"


@define_evaluator(type="regex", label="Regex Match", gate=_gate, inline=lambda config: config.compiled.linear)
def regex(ctx: EvaluatorContext[RegexConfig]) -> Graded:
    """The response matches a pattern, or does not when it must not."""
    config = ctx.config
    match = config.compiled.find(ctx.response)
    metadata = {} if match is None else {"match": cut(match, _LONGEST_QUOTE)}
    return ruled(
        ctx, (match is not None) == config.must_match, match_reason(config.compiled, match), **metadata
    )


def match_reason(pattern: Pattern, match: str | None) -> str:
    """What was found, for a reader."""
    source = f"/{cut(pattern.source, _LONGEST_QUOTE)}/"
    return f"no match for {source}" if match is None else f"{source} matches {cut(match, _LONGEST_QUOTE)!r}"
