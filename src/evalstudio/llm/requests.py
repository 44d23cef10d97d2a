"""A model request as plain data, for caches and cassettes: everything the answer depends on, nothing else.

Keys, headers, timings and limits are not in it. Marks that differ by chance from call to call are brought
to one form, so that the same question is the same request.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from ..connectors.secrets import shown_address
from ..evaluators.marks import MARK
from ..messages import Message
from .providers import Target
from .settings import LlmSettings, Role
from .telling import told


def text_request(
    settings: LlmSettings,
    target: Target,
    messages: Sequence[Message],
    role: Role,
    schema: type[BaseModel] | None = None,
) -> dict[str, Any]:
    """A request for a text, or for an object of the schema."""
    request = _model(settings, target, "chat" if schema is None else "answer")
    heat = settings.temperature
    request["temperature"] = heat.evaluation if role == "evaluation" else heat.persona
    request |= {"seed": settings.seed, "maxTokens": settings.max_tokens}
    if schema is not None:
        request |= {"structured": settings.structured, "schema": _shape(schema)}
    texts = [(message.role, told(message)) for message in messages]
    request["messages"] = without_marks([(said_by, text) for said_by, text in texts if text.strip()])
    return request


@lru_cache(maxsize=256)
def _shape(schema: type[BaseModel]) -> dict[str, Any]:
    return {"name": schema.__name__, **schema.model_json_schema()}


def vector_request(settings: LlmSettings, target: Target, text: str) -> dict[str, Any]:
    """A request for the vector of one text: which texts share a call is chance."""
    return {**_model(settings, target, "embed"), "text": text}


def _model(settings: LlmSettings, target: Target, op: str) -> dict[str, Any]:
    written = settings.access(target.provider).base_url
    address = {"baseUrl": shown_address(written)} if written else {}
    return {"op": op, "provider": target.provider, "model": target.model, **address}


def without_marks(said: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """The messages with the first mark as MARK1, the next other one as MARK2, and so on."""
    names: dict[str, str] = {}

    def name_of(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"MARK{len(names) + 1}")

    return [{"role": role, "content": MARK.sub(name_of, text)} for role, text in said]
