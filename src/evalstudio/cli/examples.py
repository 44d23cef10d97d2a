"""An entry to copy for an evaluator: made from its config schema, and checked by the evaluator itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from .fields import Schema, alternatives, resolved

if TYPE_CHECKING:
    from ..evaluators.definition import EvaluatorDefinition

_DEEPEST = 6


def example_entry(definition: EvaluatorDefinition) -> dict[str, Any] | None:
    """The smallest entry that the evaluator accepts, or nothing where none could be made."""
    for config in _candidates(definition.config.schema):
        try:
            definition.use(config)
        except Exception:
            # A plugin's validator may raise anything; an example it refuses is simply not shown.
            continue
        return {"type": definition.type, **({"config": config} if config else {})}
    return None


def _candidates(schema: Schema) -> Iterator[dict[str, Any]]:
    """The schema's own examples, the required fields alone, with one more, then all."""
    given: list[Any] = schema.get("examples", [])
    yield from (dict(cast(Schema, example)) for example in given if isinstance(example, Mapping))
    smallest = _object(schema, schema, _DEEPEST)
    every = {
        name: _value(schema, resolved(schema, part), _DEEPEST)
        for name, part in schema.get("properties", {}).items()
    }
    yield smallest
    for name, value in every.items():
        yield {**smallest, name: value}
    yield {**smallest, **every}


def _value(root: Schema, part: Schema, depth: int) -> Any:
    if part.get("examples"):
        return part["examples"][0]
    if part.get("default") is not None:
        return part["default"]
    shape = next(iter(alternatives(root, part)), part)
    if "const" in shape:
        return shape["const"]
    if shape.get("enum"):
        return shape["enum"][0]
    return _of_type(root, shape, depth)


def _of_type(root: Schema, shape: Schema, depth: int) -> Any:
    match shape.get("type"):
        case "string":
            return "text".ljust(shape.get("minLength", 0), "x")[: shape.get("maxLength")]
        case "integer" | "number":
            return _number(shape)
        case "boolean":
            return True
        case "array":
            items = resolved(root, shape.get("items"))
            return [_value(root, items, depth - 1)] if depth > 0 and items else []
        case "object" | None:
            return _object(root, shape, depth)
        case _:
            return None


def _number(shape: Schema) -> float:
    """A round number inside the bounds."""
    low = shape.get("minimum", shape.get("exclusiveMinimum"))
    high = shape.get("maximum", shape.get("exclusiveMaximum"))
    if high is not None and high <= 1:
        return high / 2 if shape.get("type") == "number" else int(high)
    wanted = 10 if low is None or low < 10 else int(low) + 1
    return wanted if high is None or wanted <= high else high


def _object(root: Schema, shape: Schema, depth: int) -> dict[str, Any]:
    if depth <= 0:
        return {}
    properties: Mapping[str, Any] = shape.get("properties", {})
    # A constant tells the shapes of a union apart, required or not.
    constant = [name for name, part in properties.items() if "const" in resolved(root, part)]
    names = dict.fromkeys([*constant, *shape.get("required", ())])
    return {name: _value(root, resolved(root, properties.get(name)), depth - 1) for name in names}
