"""Reading a model's reply as one object of a schema: lenient about the wrapping, strict about the object.

Pure functions. Whatever is not exactly one fitting object is ``InvalidAnswer``, never a guess.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

Shape = TypeVar("Shape", bound=BaseModel)

_MOST_OBJECTS = 50
_MOST_PROBLEMS = 3
# A brace that opens an object is followed by a key or closes at once; any other is prose.
_OPENS = re.compile(r'\{\s*["}]')
_HALVES = re.compile(r"\\u[dD][89a-fA-F]")


class InvalidAnswer(ValueError):
    """The reply is not one object of the schema; the message says why, for the model to read."""


def read_answer(text: str, schema: type[Shape]) -> Shape:
    """The one object of the schema in the reply: alone, fenced, or with text around it."""
    objects = find_objects(text)
    if not objects:
        raise InvalidAnswer("there is no JSON object in the reply" if text.strip() else "the reply is empty")
    fitting: list[Shape] = []
    problems = ""
    for candidate in objects:
        try:
            read = schema.model_validate(candidate)
        except ValidationError as error:
            problems = _problems(error)
        else:
            if read not in fitting:
                fitting.append(read)
    if len(fitting) > 1:
        raise InvalidAnswer(f"the reply has {len(fitting)} different answers; exactly one is wanted")
    if not fitting:
        raise InvalidAnswer(problems)
    return fitting[0]


def find_objects(text: str) -> list[dict[str, Any]]:
    """Every outermost JSON object in the text. One that is broken spoils the whole reply: what is nested
    in it, or stands beside it, may not be what the model meant."""
    objects: list[dict[str, Any]] = []
    opening = _OPENS.search(text)
    while opening:
        if len(objects) == _MOST_OBJECTS:
            raise InvalidAnswer(f"the reply has more than {_MOST_OBJECTS} JSON objects")
        try:
            value, end = _DECODER.raw_decode(text, opening.start())
        except json.JSONDecodeError as error:
            raise InvalidAnswer(f"the JSON is broken or cut off: {error}") from None
        except RecursionError:
            raise InvalidAnswer("the JSON is nested too deeply") from None
        except ValueError as error:
            raise InvalidAnswer(f"the JSON cannot be used: {error}") from None
        objects.append(_sound(value) if _HALVES.search(text, opening.start(), end) else value)
        opening = _OPENS.search(text, end)
    return objects


def _sound(value: dict[str, Any]) -> dict[str, Any]:
    """The same without halves of surrogate pairs, which can be neither stored nor sent."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _problems(error: ValidationError) -> str:
    """What does not fit, without the values: the first few problems, each with its place."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    texts = [
        f"{'.'.join(map(str, problem['loc'])) or 'the object'}: {problem['msg']}"
        for problem in problems[:_MOST_PROBLEMS]
    ]
    rest = len(problems) - len(texts)
    return "; ".join(texts) + (f"; and {rest} more" if rest else "")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, value in pairs:
        if key in read and read[key] != value:
            raise ValueError(f'"{key}" is given twice with different values')
        read[key] = value
    return read


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large a number")
    return number


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number in JSON")


# Raw line breaks inside strings are what models write; they do not change the meaning.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_constant=_no_number, strict=False
)
