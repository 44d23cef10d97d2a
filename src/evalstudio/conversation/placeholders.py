"""``{{name}}`` in a scenario's texts, filled from the case in one pass: values are never expanded again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..base.json_text import json_text
from ..base.paths import MISSING, lookup, split_path
from ..base.problems import InvalidInput, Problem
from ..messages import ContentBlock, Message

_PLACEHOLDER = re.compile(r"\{\{\s*([\w][\w.\[\]-]*)\s*\}\}")


def fill(text: str, values: Mapping[str, Any]) -> str:
    """The text with its placeholders replaced; those without a value are told all at once."""
    unfilled: list[Problem] = []

    def value_of(match: re.Match[str]) -> str:
        value = values.get(match[1], MISSING)
        if value is MISSING:
            value = lookup(values, split_path(match[1]))
        if value is MISSING:
            known = ", ".join(sorted(values)) or "none"
            unfilled.append(Problem(f"{match[0]} has no value in this case", hint=f"its values are: {known}"))
            return match[0]
        return value if isinstance(value, str) else json_text(value)

    filled = _PLACEHOLDER.sub(value_of, text)
    if unfilled:
        raise InvalidInput(*unfilled)
    return filled


def fill_message(message: Message, values: Mapping[str, Any]) -> Message:
    content = message.content
    if isinstance(content, str):
        content = fill(content, values)
    elif content is not None:
        content = [_fill_block(block, values) for block in content]
    return message.model_copy(update={"content": content})


def _fill_block(block: ContentBlock, values: Mapping[str, Any]) -> ContentBlock:
    return block if block.text is None else block.model_copy(update={"text": fill(block.text, values)})
