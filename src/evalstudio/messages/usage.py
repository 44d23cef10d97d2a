"""Tokens one invocation used, under the many names they come in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, model_validator

from ..base.json_text import json_text
from ..base.text import excerpt

# Beyond this no agent counts, and JavaScript no longer counts exactly.
MOST_TOKENS = 2**53
_NAMES: dict[str, tuple[str, ...]] = {
    "input_tokens": (
        "input_tokens",
        "prompt_tokens",
        "inputTokens",
        "promptTokens",
        "promptTokenCount",
        "prompt_token_count",
        "input",
    ),
    "output_tokens": (
        "output_tokens",
        "completion_tokens",
        "outputTokens",
        "completionTokens",
        "candidatesTokenCount",
        "candidates_token_count",
        "output",
    ),
    "total_tokens": ("total_tokens", "totalTokens", "totalTokenCount", "total_token_count", "total"),
}


class TokensUsage(BaseModel):
    """Tokens one invocation used. A missing total is the sum of its parts."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0

    @model_validator(mode="before")
    @classmethod
    def _from_other_names(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        read = _by_our_names(cast(Mapping[str, Any], value))
        if read["total_tokens"] is None:
            read["total_tokens"] = (read["input_tokens"] or 0) + (read["output_tokens"] or 0)
        return {key: number or 0 for key, number in read.items()}

    def __add__(self, other: TokensUsage) -> TokensUsage:
        """The sum, no larger than what can be stored."""
        return TokensUsage.model_construct(
            input_tokens=min(self.input_tokens + other.input_tokens, MOST_TOKENS),
            output_tokens=min(self.output_tokens + other.output_tokens, MOST_TOKENS),
            total_tokens=min(self.total_tokens + other.total_tokens, MOST_TOKENS),
        )


def read_usage(value: object) -> tuple[TokensUsage | None, str | None]:
    """What an agent says it used; where that says nothing usable, why not."""
    if value is None:
        return None, None
    fields: object = value.model_dump() if isinstance(value, BaseModel) else value
    if not isinstance(fields, Mapping):
        return None, f"the token usage is not an object of numbers: {_quoted(value)}"
    reported = cast(Mapping[str, Any], fields)
    numbers = _by_our_names(reported)
    present = {name: number for name, number in numbers.items() if number is not None}
    if not present:
        return None, f"the token usage holds no count that is known: {_quoted(reported)}"
    counts = {name: _count(number) for name, number in present.items()}
    if wrong := next((name for name, count in counts.items() if count is None), None):
        return None, f"{wrong} is not a number of tokens: {_quoted(present[wrong])}"
    return _consistent(cast(dict[str, int], counts))


def read_cost(value: object) -> float | None:
    """What an agent says an answer cost, in US dollars; nothing where that is no such number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


def _consistent(counts: dict[str, int]) -> tuple[TokensUsage | None, str | None]:
    parts = counts.get("input_tokens", 0) + counts.get("output_tokens", 0)
    if "total_tokens" not in counts and len(counts) < 2:
        absent = next(name for name in _NAMES if name not in counts)
        return None, f"the token usage has neither a total nor {absent}"
    total = counts.setdefault("total_tokens", parts)
    if total > MOST_TOKENS:
        return None, f"{total:,} tokens are more than any agent uses"
    if total < parts:
        return None, f"{total:,} tokens in total are fewer than {parts:,} of input and output together"
    return TokensUsage.model_construct(None, **{name: counts.get(name, 0) for name in _NAMES}), None


def _by_our_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        ours: next((fields[name] for name in names if fields.get(name) is not None), None)
        for ours, names in _NAMES.items()
    }


def _count(value: Any) -> int | None:
    """A whole number from 0 to the most there may be; numpy's too."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        value = int(value) if math.isfinite(value) and value.is_integer() else None
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        return None
    return number if 0 <= number <= MOST_TOKENS else None


def _quoted(value: object) -> str:
    return excerpt(json_text(value), 80)
