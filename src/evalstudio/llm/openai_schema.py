"""A JSON Schema as OpenAI's protocol takes it, and whether a server may be asked to hold to it strictly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

Schema = dict[str, Any]

_DROPPED = frozenset({"title", "$schema", "discriminator"})
_LENGTHS = frozenset({"minLength", "maxLength"})
# What strict answers may not ask for; a schema with any of it is sent all the same, without "strict".
_NOT_STRICT = frozenset(
    (
        *("default", "oneOf", "uniqueItems", "prefixItems", "unevaluatedItems"),
        *("contains", "minContains", "maxContains", "unevaluatedProperties"),
        *("patternProperties", "propertyNames", "minProperties", "maxProperties"),
    )
)
_FORMATS = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"))
_TYPED = frozenset({"type", "$ref", "anyOf", "allOf", "enum", "const"})
_LOOKAROUND = re.compile(r"\(\?<?[=!]")
_DEEPEST, _MOST_PROPERTIES = 10, 5_000


def protocol_schema(schema: Schema, *, lengths: bool) -> tuple[Schema, bool]:
    """The schema in the protocol's form, and whether it can be asked for strictly.

    ``lengths`` says whether the server knows bounds on the length of texts in strict answers.
    """
    reading = _Reading(schema.get("$ref"), lengths)
    shaped = reading.shaped(schema)
    if reading.root is not None:
        # A recursive model refers to itself from the top; there the protocol wants the object itself.
        shaped.pop("$ref", None)
        shaped |= shaped["$defs"][reading.root.removeprefix("#/$defs/")]
    return shaped, reading.strict and reading.properties <= _MOST_PROPERTIES


class _Reading:
    def __init__(self, root: str | None, lengths: bool) -> None:
        self.root = root
        self.strict = True
        self.properties = 0
        self._unfit = _NOT_STRICT if lengths else _NOT_STRICT | _LENGTHS

    def shaped(self, schema: Any, depth: int = 0) -> Any:
        if not isinstance(schema, dict):
            return schema
        fields: Schema = {key: value for key, value in cast(Schema, schema).items() if key not in _DROPPED}
        if fields.get("type") == "object":
            depth += 1
            self._object(fields, depth)
        self.strict = self.strict and depth <= _DEEPEST and self._strict(fields)
        self._below(fields, depth)
        return self._referring(fields)

    def _below(self, fields: Schema, depth: int) -> None:
        for key, value in fields.items():
            match key, value:
                case ("properties", dict()):
                    fields[key] = {
                        name: self.shaped(part, depth) for name, part in cast(Schema, value).items()
                    }
                case ("$defs", dict()):
                    fields[key] = {name: self.shaped(part) for name, part in cast(Schema, value).items()}
                case ("anyOf" | "allOf" | "oneOf" | "prefixItems", list()):
                    fields[key] = [self.shaped(part, depth) for part in cast(list[Any], value)]
                case ("items" | "additionalProperties", dict()):
                    fields[key] = self.shaped(value, depth)
                case _:
                    pass

    def _object(self, fields: Schema, depth: int) -> None:
        properties = cast(Mapping[str, Any], fields.setdefault("properties", {}))
        self.properties += len(properties)
        if fields.setdefault("additionalProperties", False) is not False:
            self.strict = False
        if not set(properties) <= set(fields.get("required", ())) or "required" not in fields:
            self.strict = False

    def _strict(self, fields: Schema) -> bool:
        if not self._unfit.isdisjoint(fields) or fields.get("format", "date") not in _FORMATS:
            return False
        if _LOOKAROUND.search(str(fields.get("pattern", ""))):
            return False
        items: object = fields.get("items")
        typed = isinstance(items, dict) and not _TYPED.isdisjoint(cast(Schema, items))
        return typed or fields.get("type") != "array"

    def _referring(self, fields: Schema) -> Schema:
        reference = fields.get("$ref")
        if reference is None:
            return fields
        if reference == self.root and "$defs" not in fields:
            fields["$ref"] = "#"
        if len(fields) > 1 and "$defs" not in fields:
            # Nothing may stand beside a reference, but a description may stand beside a choice of one.
            fields["anyOf"] = [{"$ref": fields.pop("$ref")}]
        return fields
