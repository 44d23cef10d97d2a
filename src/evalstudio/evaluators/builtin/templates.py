"""Prompt templates: ``{{name}}`` filled in one pass, so that text from the agent is never expanded."""

from __future__ import annotations

import re
from typing import Any

from ...messages import Message, json_text, text_of
from ..contract import EvaluatorContext
from ..criteria import EvaluationCriteria

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][\w.\[\]]*)\s*\}\}")
_NOT_THERE = "N/A"


def fill(template: str, ctx: EvaluatorContext[Any], criteria: list[EvaluationCriteria]) -> str:
    """The template with every known placeholder replaced; unknown ones stay as they are."""
    return _PLACEHOLDER.sub(lambda found: _value(found[1], found[0], ctx, criteria), template)


def _value(name: str, as_written: str, ctx: EvaluatorContext[Any], criteria: list[EvaluationCriteria]) -> str:
    match name:
        case "input" | "response" | "reference":
            return text_at(name, ctx) or _NOT_THERE
        case "criterion_name":
            return ", ".join(criterion.name for criterion in criteria)
        case "criterion_description":
            return "; ".join(criterion.description for criterion in criteria)
        case "criterion_scale":
            return ", ".join(criterion.scale for criterion in criteria)
        case _ if name.startswith(("context.", "metadata.")):
            return text_at(name, ctx) or _NOT_THERE
        case _:
            return as_written


def text_at(path: str, ctx: EvaluatorContext[Any]) -> str | None:
    """What a path leads to, as text for a reader; ``None`` where there is nothing."""
    value = ctx.find(path)
    if value is None or isinstance(value, str):
        return value
    return text_of(value) if isinstance(value, Message) else json_text(value)
