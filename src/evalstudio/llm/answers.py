"""Reading a model's reply as one object of a schema: alone, or alone in a fence. Nothing is converted.

Pure functions. Whatever is not exactly one fitting object is ``InvalidAnswer``, never a guess.
"""

from __future__ import annotations

import json
import re
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ..base.json_text import strict_json
from ..evaluators.model_replies import problems_in

Shape = TypeVar("Shape", bound=BaseModel)

# Servers without structured output often fence the object; between the two fences it is still alone.
_FENCE = re.compile(r"(```|~~~)[A-Za-z]*[ \t]*\r?\n(.*?)\r?\n?\1", re.DOTALL)
_BLANK = " \t\r\n\ufeff"


class InvalidAnswer(ValueError):
    """The reply is not one object of the schema; the message says why, for the model to read."""


def read_answer(text: str, schema: type[Shape]) -> Shape:
    """The one object of the schema that the reply is."""
    written = json.dumps(_object_in(text), ensure_ascii=False)
    try:
        # Halves of surrogate pairs can be neither stored nor sent.
        return schema.model_validate_json(written.encode("utf-8", "replace"), strict=True)
    except ValidationError as error:
        raise InvalidAnswer(problems_in(error)) from None


def _object_in(text: str) -> object:
    bare = text.strip(_BLANK)
    if not bare:
        raise InvalidAnswer("the reply is empty")
    fence = _FENCE.fullmatch(bare)
    try:
        value: object = strict_json(fence[2].strip(_BLANK) if fence else bare)
    except json.JSONDecodeError as error:
        raise InvalidAnswer(f"it is not one JSON object and nothing else: {error}") from None
    except ValueError as error:
        raise InvalidAnswer(f"the JSON cannot be used: {error}") from None
    if not isinstance(value, dict):
        raise InvalidAnswer("it is JSON, but not an object")
    return value  # pyright: ignore[reportUnknownVariableType]
