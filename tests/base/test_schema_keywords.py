"""Words in a JSON Schema: remarks stay, and mistakes are found wherever they are."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from evalstudio.base.schema_keywords import ineffective_keyword
from evalstudio.base.schemas import compile_schema


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"x-unit": "ms", "X-note": {"type": "string"}, "note": "a remark", "unit": "ms", "order": 1},
        {"nullable": True, "example": 3, "discriminator": {"propertyName": "kind"}, "xml": {"name": "a"}},
        {"properties": {"requird": {"type": "string"}, "min": {"type": "integer"}}},
        {"required": ["requird"], "enum": [{"minLenght": 1}], "const": {"max": 2}, "default": {"max": 2}},
        {"dependencies": {"a": ["requird"]}, "dependentRequired": {"a": ["max"]}},
        {"$defs": {"max": {"minimum": 1}}, "$ref": "#/$defs/max", "examples": [{"typ": 1}]},
    ],
)
def test_remarks_and_names_of_properties_are_left_alone(schema: Any) -> None:
    assert ineffective_keyword(schema) is None


@pytest.mark.parametrize(
    ("schema", "place", "hint"),
    [
        ({"typ": "string"}, "typ", "type"),
        ({"defs": {}}, "defs", "$defs"),
        ({"ref": "#"}, "ref", "$ref"),
        ({"items": {"minlength": 3}}, "items.minlength", "minLength"),
        ({"items": [{"enums": []}]}, "items[0].enums", "enum"),
        ({"not": {"patern": "a"}}, "not.patern", "pattern"),
        ({"$defs": {"a": {"oneOff": []}}}, "$defs.a.oneOff", "oneOf"),
        ({"dependencies": {"a": {"requires": ["b"]}}}, "dependencies.a.requires", "required"),
        ({"additionalProperties": {"regex": "a"}}, "additionalProperties.regex", "pattern"),
    ],
)
def test_what_is_almost_a_keyword_is_told_with_its_place(schema: Any, place: str, hint: str) -> None:
    told = ineffective_keyword(schema)
    assert told is not None
    assert told.startswith(f"{place}: is no keyword of JSON Schema")
    assert told.endswith(f"did you mean {hint}?")


def test_schemas_may_be_nested_as_deep_as_somebody_likes() -> None:
    schema: dict[str, Any] = {"requird": []}
    for _ in range(5_000):
        schema = {"not": schema}
    assert ineffective_keyword(schema) is not None


def test_a_schema_of_nothing_but_unknown_words_is_refused_before_all_are_compared() -> None:
    many = ineffective_keyword({f"word{number}": 1 for number in range(100_000)})
    assert many is not None
    assert "one of more than 2,000 words that are no keywords" in many
    assert (
        ineffective_keyword({"properties": {f"p{number}": {"note": ""} for number in range(5_000)}}) is None
    )
    assert ineffective_keyword({"remark" * 1_000: 1, "x-" + "y" * 1_000: 2}) is None


def test_a_schema_that_holds_itself_is_looked_at_once() -> None:
    endless: dict[str, Any] = {"type": "object"}
    endless["not"] = endless
    assert ineffective_keyword(endless) is None
    endless["properties"] = {"a": {"anyOf": [endless, {"requird": []}]}}
    told = ineffective_keyword(endless)
    assert told is not None
    assert told.startswith("properties.a.anyOf[1].requird:")


def test_a_part_that_stands_in_many_places_is_looked_at_once() -> None:
    part: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        part = {"allOf": [part, part]}
    assert ineffective_keyword(part) is None


_DRAFTS = {
    4: "http://json-schema.org/draft-04/schema#",
    6: "http://json-schema.org/draft-06/schema#",
    7: "http://json-schema.org/draft-07/schema#",
    2019: "https://json-schema.org/draft/2019-09/schema",
    2020: "https://json-schema.org/draft/2020-12/schema",
}
# A schema, and a value that breaks it in every draft which has the keyword.
_BROKEN: dict[str, tuple[dict[str, Any], Any]] = {
    "const": ({"const": 2}, 1),
    "contains": ({"contains": {"type": "string"}}, [1]),
    "propertyNames": ({"propertyNames": {"maxLength": 0}}, {"a": 1}),
    "then": ({"if": {}, "then": {"type": "string"}}, 1),
    "else": ({"if": {"not": {}}, "else": {"type": "string"}}, 1),
    "minContains": ({"contains": {}, "minContains": 2}, [1]),
    "maxContains": ({"contains": {}, "maxContains": 1}, [1, 1]),
    "dependentRequired": ({"dependentRequired": {"a": ["b"]}}, {"a": 1}),
    "dependentSchemas": ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}),
    "dependencies": ({"dependencies": {"a": ["b"]}}, {"a": 1}),
    "prefixItems": ({"prefixItems": [{"type": "string"}]}, [1]),
    "unevaluatedItems": ({"unevaluatedItems": {"type": "string"}}, [1]),
    "unevaluatedProperties": ({"unevaluatedProperties": {"type": "string"}}, {"a": 1}),
    "$dynamicRef": ({"$dynamicRef": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, 1),
    "$recursiveRef": (
        {"properties": {"a": {"$recursiveRef": "#"}}, "maxProperties": 1},
        {"a": {"x": 1, "y": 2}},
    ),
    "$ref and more": ({"$ref": "#/$defs/a", "type": "string", "$defs": {"a": {}}}, 1),
    "additionalItems": ({"additionalItems": {"type": "string"}}, [1]),
    "contentSchema": ({"contentMediaType": "application/json", "contentSchema": {"type": "string"}}, "1"),
    **{
        f"format {name}": ({"format": name}, "%%% (")
        for name in (
            *("date", "date-time", "time", "duration", "email", "idn-email", "hostname", "idn-hostname"),
            *("ipv4", "ipv6", "uri", "uri-reference", "iri", "iri-reference", "uri-template"),
            *("json-pointer", "relative-json-pointer", "regex", "uuid"),
        )
    },
}


@pytest.mark.parametrize("draft", [*_DRAFTS, None])
@pytest.mark.parametrize("keyword", _BROKEN)
def test_a_keyword_checks_in_its_draft_or_is_refused(keyword: str, draft: int | None) -> None:
    schema, value = _BROKEN[keyword]
    if draft is not None:
        schema = {"$schema": _DRAFTS[draft], **schema}
    told = ineffective_keyword(schema)
    assert told is None or not keyword.startswith("format")
    if told is None:
        assert not compile_schema(schema).is_valid(value)
    else:
        assert jsonschema_rs.validator_for(schema).is_valid(value), told


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (
            {"$schema": _DRAFTS[7], "items": {"prefixItems": []}},
            "items.prefixItems: checks nothing in draft 7 of JSON Schema; leave out $schema, or name draft "
            "2020-12 or a newer one in it",
        ),
        (
            {"$recursiveRef": "#"},
            "$recursiveRef: checks nothing in draft 2020-12 of JSON Schema; name draft 2019-09 in $schema, "
            "or write $dynamicRef",
        ),
        (
            {
                "$schema": "http://json-schema.org/draft-07/schema",
                "$ref": "#/definitions/a",
                "type": "string",
            },
            "type: checks nothing beside $ref in draft 7; put both into allOf, or leave out $schema",
        ),
        ({"then": {"type": "string"}}, "then: checks nothing without if beside it"),
        ({"minContains": 2}, "minContains: checks nothing without contains beside it"),
        (
            {"items": {}, "additionalItems": False},
            "additionalItems: checks nothing unless items is a list; did you mean items?",
        ),
        ({"format": "datetime"}, 'format: "datetime" is no format that is checked; did you mean date-time?'),
        ({"format": "E-Mail"}, 'format: "E-Mail" is no format that is checked; did you mean email?'),
        (
            {"properties": {"a": {"format": "phone"}}},
            'properties.a.format: "phone" is no format that is checked; write a pattern, or a name that '
            "begins with x- as a remark",
        ),
    ],
)
def test_a_keyword_without_effect_is_told_with_what_to_do(schema: Any, told: str) -> None:
    assert ineffective_keyword(schema) == told


@pytest.mark.parametrize("name", ["int32", "password", "binary", "uuid4", "enum", "x-phone", "date", "uuid"])
def test_formats_that_are_checked_or_only_remarks_are_left_alone(name: str) -> None:
    assert ineffective_keyword({"type": "string", "format": name}) is None


def test_a_long_name_of_a_format_is_cut_in_the_error() -> None:
    told = ineffective_keyword({"format": "p" * 1_000_000})
    assert told is not None
    assert len(told) < 200
