"""JSON Schemas of the files people write, for editors: what is registered here is known in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from ..base.schemas import Schema
from ..plugins import PluginRegistry
from .documents import KINDS, MODELS, PLURALS, REFERENCES, DefinitionKind

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FOR_EDITORS = {"type": "string", "description": "For editors"}


def schema_of(kind: DefinitionKind, registry: PluginRegistry) -> Schema:
    """The schema of a file that holds one definition of this kind."""
    shapes = _shapes(registry)
    whole = _single(kind, shapes.pop(kind))
    return {"$schema": _DIALECT, **whole, "$defs": shapes}


def definitions_schema(registry: PluginRegistry) -> Schema:
    """The schema of any file of definitions: one with its kind, many in lists, or a list of such."""
    shapes = _shapes(registry)
    lists = {
        plural: {"type": "array", "items": {"$ref": f"#/$defs/{kind}"}} for plural, kind in PLURALS.items()
    }
    properties = {"$schema": _FOR_EDITORS, **lists}
    many = {"type": "object", "properties": properties, "additionalProperties": False}
    one = {"anyOf": [many, *(_single(kind, shapes[kind]) for kind in KINDS)]}
    return {
        "$schema": _DIALECT,
        "title": "EvalStudio definitions",
        "anyOf": [{"$ref": "#/$defs/file"}, {"type": "array", "items": {"$ref": "#/$defs/file"}}],
        "$defs": {**shapes, "file": one},
    }


def _single(kind: DefinitionKind, shape: Schema) -> Schema:
    properties = {"$schema": _FOR_EDITORS, "kind": {"const": kind}, **shape["properties"]}
    return {**shape, "properties": properties, "required": ["kind", *shape["required"]]}


def _shapes(registry: PluginRegistry) -> dict[str, Schema]:
    """Every kind and what it is made of, by name."""
    shapes: dict[str, Schema] = {}
    for kind in KINDS:
        schema = MODELS[kind].model_json_schema(by_alias=True)
        shapes |= schema.pop("$defs", {})
        shapes[kind] = _with_names(kind, schema)
    _configured(shapes, "EvaluatorUse", registry.list_evaluator_types())
    _configured(shapes, "connector", registry.list_connector_types())
    return shapes


def _with_names(kind: DefinitionKind, schema: Schema) -> Schema:
    """References as files have them: by name."""
    names = {ids: (field, target) for field, (ids, target) in REFERENCES[kind].items()}
    properties: Schema = {}
    for key, part in schema["properties"].items():
        field, target = names.get(key, (key, ""))
        properties[field] = {**part, "title": field, "description": f"Names of {target}s"} if target else part
    required = [names.get(key, (key, ""))[0] for key in schema.get("required", [])]
    return {**schema, "properties": properties, "required": required}


def _configured(shapes: dict[str, Schema], name: str, types: Iterable[dict[str, Any]]) -> None:
    """Say which config belongs to which type, so that an editor can complete and check it."""
    rules: list[Schema] = []
    described = list(types)
    for item in described:
        prefix = f"{name}.{item['type']}"
        config = cast(Schema, _moved(item["configSchema"], prefix))
        shapes |= {f"{prefix}.{inner}": part for inner, part in config.pop("$defs", {}).items()}
        shapes[prefix] = config
        condition = {"properties": {"type": {"const": item["type"]}}, "required": ["type"]}
        consequence = {"properties": {"config": {"$ref": f"#/$defs/{prefix}"}}}
        rules.append({"if": condition, "then": consequence})
    shape = shapes[name]
    known = {**shape["properties"]["type"], "enum": [item["type"] for item in described]}
    shapes[name] = {**shape, "properties": {**shape["properties"], "type": known}, "allOf": rules}


def _moved(value: Any, prefix: str) -> Any:
    """A schema whose own definitions are found under another name."""
    if isinstance(value, dict):
        fields = {key: _moved(item, prefix) for key, item in cast(Schema, value).items()}
        reference = fields.get("$ref")
        if isinstance(reference, str):
            fields["$ref"] = reference.replace("#/$defs/", f"#/$defs/{prefix}.")
        return fields
    return [_moved(item, prefix) for item in cast(list[Any], value)] if isinstance(value, list) else value
