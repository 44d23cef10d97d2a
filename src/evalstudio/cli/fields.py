"""A JSON Schema as rows for a reader: field, type, default, description."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

_DEEPEST = 3
_LONGEST_DEFAULT = 40

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    path: str
    type: str
    default: str
    description: str


def fields_of(schema: Schema) -> list[Field]:
    """Every field of a config, nested ones by their path (``rules[].tool``)."""
    return list(_fields(schema, schema, "", _DEEPEST))


def _fields(root: Schema, schema: Schema, prefix: str, depth: int) -> Iterator[Field]:
    required = schema.get("required", ())
    for name, given in schema.get("properties", {}).items():
        part = resolved(root, given)
        path = f"{prefix}{name}"
        yield Field(path, type_text(root, part), _default(part, name in required), _described(part))
        if depth > 0:
            yield from _nested(root, part, path, depth - 1)


def _nested(root: Schema, part: Schema, path: str, depth: int) -> Iterator[Field]:
    """The fields of the objects inside a field; what several shapes share is told once."""
    told: dict[str, Field] = {}
    for shape in alternatives(root, part):
        inner, mark = shape, "."
        if isinstance(shape.get("items"), Mapping):
            inner, mark = resolved(root, shape["items"]), "[]."
        for one in alternatives(root, inner):
            for field in _fields(root, one, path + mark, depth):
                told[field.path] = _joined(told[field.path], field) if field.path in told else field
    yield from told.values()


def _joined(first: Field, second: Field) -> Field:
    """One field of two shapes: where they differ, what only one of them says is left out."""
    if first.type == second.type:
        return first
    default, description = (
        one if one == other else ""
        for one, other in ((first.default, second.default), (first.description, second.description))
    )
    return Field(first.path, f"{first.type}, {second.type}", default, description)


def resolved(root: Schema, part: Any) -> Schema:
    """A part of a schema with its local reference followed; a boolean schema is an empty one."""
    if not isinstance(part, Mapping):
        return {}
    here = cast(Schema, part)
    reference = here.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return here
    target: Any = root
    for step in reference[2:].split("/"):
        target = cast(Schema, target).get(step, {}) if isinstance(target, Mapping) else {}
    return {**target, **{key: value for key, value in here.items() if key != "$ref"}}


def alternatives(root: Schema, part: Schema) -> list[Schema]:
    """The shapes a value may have, ``null`` left out."""
    options = cast(Sequence[Any], part.get("anyOf") or part.get("oneOf") or ())
    shapes = [resolved(root, option) for option in options] or [part]
    return [shape for shape in shapes if shape.get("type") != "null"]


def type_text(root: Schema, part: Schema) -> str:
    texts = [_one_type(root, shape) for shape in alternatives(root, part)]
    return " or ".join(dict.fromkeys(texts)) or "null"


def _one_type(root: Schema, part: Schema) -> str:
    if "const" in part:
        return _json(part["const"])
    if "enum" in part:
        return ", ".join(_json(item) for item in part["enum"])
    kind = part.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(str(one) for one in cast(list[object], kind) if one != "null")
    if kind == "array" and isinstance(part.get("items"), Mapping):
        return f"list of {type_text(root, resolved(root, part['items']))}"
    return "list" if kind == "array" else str(kind)


def _default(part: Schema, required: bool) -> str:
    if required:
        return "required"
    if part.get("default") is None:
        return ""
    text = _json(part["default"])
    return text if len(text) <= _LONGEST_DEFAULT else text[: _LONGEST_DEFAULT - 1] + "…"


def _described(part: Schema) -> str:
    return str(part.get("description") or "")


def _json(value: object) -> str:
    import orjson

    return orjson.dumps(value, default=str).decode()
