"""What models are asked for, and how their replies are held to it: field by field, nothing converted.

A reply of several parts keeps those that can be read beside those that cannot.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

_MOST_PROBLEMS = 3


def _ask_for_all(schema: dict[str, Any]) -> None:
    """The model is asked for every field; one that leaves out a side remark is understood all the same."""
    schema["required"] = list(schema["properties"])
    for shape in schema["properties"].values():
        shape.pop("default", None)
        if "anyOf" in shape:
            (only,) = [branch for branch in shape.pop("anyOf") if branch != {"type": "null"}]
            shape.update(only)


class ModelReply(BaseModel):
    """The base of what a model answers. ``null`` for a field that may be left out is the same as without."""

    model_config = ConfigDict(strict=True, extra="forbid", json_schema_extra=_ask_for_all)

    @model_validator(mode="before")
    @classmethod
    def _null_is_left_out(cls, reply: object) -> object:
        if not isinstance(reply, dict):
            return reply
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        fields = cast(dict[str, Any], reply)
        return {name: item for name, item in fields.items() if item is not None or name not in optional}


class UnreadPart(BaseModel):
    """A part of a reply that is not what was asked for."""

    problem: str
    raw: Any = None


class PartedReply(ModelReply):
    """A reply of several parts, each read for itself. One in which no part can be read is no reply."""

    parts: ClassVar[dict[str, type[ModelReply]]] = {}

    @model_validator(mode="before")
    @classmethod
    def _part_by_part(cls, reply: object) -> object:
        if not isinstance(reply, dict):
            return reply
        fields = cast(dict[str, Any], reply)
        read = {name: _part(fields, name, shape) for name, shape in cls.parts.items()}
        if all(isinstance(part, UnreadPart) for part in read.values()):
            raise ValueError(_texts(read))
        return fields | read

    def unread(self) -> str:
        """What is wrong with the parts that could not be read; nothing where all could."""
        return _texts({name: getattr(self, name) for name in self.parts})


def _part(fields: dict[str, Any], name: str, shape: type[ModelReply]) -> ModelReply | UnreadPart:
    if name not in fields:
        return UnreadPart(problem="is missing")
    try:
        return shape.model_validate(fields[name])
    except ValidationError as error:
        return UnreadPart(problem=problems_in(error), raw=fields[name])


def _texts(parts: dict[str, Any]) -> str:
    return "; ".join(
        f"{name}: {part.problem}" for name, part in parts.items() if isinstance(part, UnreadPart)
    )


def unread_parts(reply: object) -> str:
    """What is wrong with an answer that was read in parts."""
    return reply.unread() if isinstance(reply, PartedReply) else ""


def problems_in(error: ValidationError) -> str:
    """What does not fit, for the model to read: the first few problems, each with its place."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    texts = [_problem(problem) for problem in problems[:_MOST_PROBLEMS]]
    rest = len(problems) - len(texts)
    return "; ".join(texts) + (f"; and {rest} more" if rest else "")


def _problem(problem: Any) -> str:
    place = ".".join(map(str, problem["loc"]))
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def refusal_of(error: BaseException) -> str:
    """Why there is no answer, in a line; a model object of the user's own may raise pydantic's error."""
    return problems_in(error) if isinstance(error, ValidationError) else str(error) or type(error).__name__
