"""JSON Schemas with words that would check nothing."""

from __future__ import annotations

from typing import Any

from .evaluator_configs import refused, rules


def schema(**keywords: Any) -> dict[str, Any]:
    return {"schema": {"type": "object", **keywords}}


refused(
    "misspelt_required",
    "A JSON Schema misspells `required`",
    "json-schema",
    schema(requird=["id"]),
    "requird: is no keyword of JSON Schema, so it would check nothing; did you mean required?",
)
refused(
    "misspelt_keyword_deep_inside",
    "A JSON Schema misspells a keyword deep inside",
    "json-schema",
    schema(properties={"a": {"anyOf": [{"type": "string", "minLenght": 3}]}}),
    "properties.a.anyOf[0].minLenght: is no keyword of JSON Schema",
)
refused(
    "keyword_in_small_letters",
    "A JSON Schema writes a keyword in small letters",
    "json-schema",
    schema(additionalproperties=False),
    "did you mean additionalProperties?",
)
refused(
    "keyword_of_another_library",
    "A JSON Schema has a keyword of another library",
    "json-schema",
    schema(properties={"age": {"type": "integer", "max": 5}}),
    "properties.age.max: is no keyword of JSON Schema, so it would check nothing; did you mean maximum?",
)
refused(
    "properties_beside_properties",
    "A JSON Schema has a property where keywords are",
    "json-schema",
    schema(age={"type": "integer"}),
    "did you mean it as one of properties?",
)
refused(
    "misspelt_schema_of_arguments",
    "The schema of a tool's arguments misspells a keyword",
    "tool-usage",
    rules({"tool": "refund", "argumentsSchema": {"type": "object", "requierd": ["id"]}}),
    "did you mean required?",
)
refused(
    "keyword_of_another_draft",
    "A JSON Schema has a keyword that its draft does not check",
    "json-schema",
    {"schema": {"$schema": "http://json-schema.org/draft-07/schema#", "dependentRequired": {"id": ["name"]}}},
    "dependentRequired: checks nothing in draft 7 of JSON Schema",
)
refused(
    "keyword_beside_a_reference",
    "A JSON Schema of an old draft has a keyword beside `$ref`",
    "json-schema",
    {
        "schema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$ref": "#/definitions/a",
            "minLength": 3,
        }
    },
    "minLength: checks nothing beside $ref in draft 7",
)
refused(
    "then_without_if",
    "A JSON Schema has `then` without `if`",
    "json-schema",
    schema(then={"required": ["id"]}),
    "then: checks nothing without if beside it",
)
refused(
    "unknown_format",
    "A JSON Schema asks for a format that nothing checks",
    "json-schema",
    schema(properties={"at": {"type": "string", "format": "datetime"}}),
    "did you mean date-time?",
)
