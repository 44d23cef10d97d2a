"""``{{name}}`` in a scenario's texts, filled from the case in one pass: values are never expanded again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..base.json_text import json_text
from ..base.paths import MISSING, lookup, split_path
from ..messages import ContentBlock, Message

_PLACEHOLDER = re.compile(r"\{\{\s*([\w][\w.\[\]-]*)\s*\}\}")


class UnfilledPlaceholder(ValueError):
    """A placeholder the case has no value for."""


def fill(text: str, values: Mapping[str, Any]) -> str:
    """The text with its placeholders replaced; one without a value is an error."""

    def value_of(found: re.Match[str]) -> str:
        value = values.get(found[1], MISSING)
        if value is MISSING:
            value = lookup(values, split_path(found[1]))
        if value is MISSING:
            known = ", ".join(sorted(values)) or "none"
            raise UnfilledPlaceholder(f"{found[0]} has no value in this case; its values are: {known}")
        return value if isinstance(value, str) else json_text(value)

    return _PLACEHOLDER.sub(value_of, text)


def fill_message(message: Message, values: Mapping[str, Any]) -> Message:
    content = message.content
    if isinstance(content, str):
        content = fill(content, values)
    elif content is not None:
        content = [_fill_block(block, values) for block in content]
    return message.model_copy(update={"content": content})


def _fill_block(block: ContentBlock, values: Mapping[str, Any]) -> ContentBlock:
    return block if block.text is None else block.model_copy(update={"text": fill(block.text, values)})
