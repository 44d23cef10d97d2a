"""``{{name}}`` in a scenario's texts, filled from the case."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..base import placeholders
from ..base.paths import MISSING, lookup
from ..base.problems import InvalidInput, Problem
from ..messages import ContentBlock, Message

# Other braces, such as those of a template language the agent is asked about, stay as they are.
_NAME = re.compile(r"""\w(?:[\w.\[\]-]|"[^"]*"|'[^']*')*""")


def fill(text: str, values: Mapping[str, Any]) -> str:
    """The text with its placeholders replaced; those without a value are told all at once."""
    unfilled: list[Problem] = []

    def value_of(name: str) -> str | None:
        if not _NAME.fullmatch(name):
            return None
        value = lookup(values, name)
        if value is MISSING:
            known = ", ".join(sorted(values)) or "none"
            message = f"{{{{{name}}}}} has no value in this case"
            unfilled.append(Problem(message, hint=f"its values are: {known}"))
            return None
        return placeholders.written(value)

    filled = placeholders.fill(text, value_of)
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
