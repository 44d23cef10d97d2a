"""Words in a JSON Schema: remarks stay, and mistakes are found wherever they are."""

from __future__ import annotations

from typing import Any

import pytest

from evalstudio.base.schema_keywords import misspelt_keyword


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
    assert misspelt_keyword(schema) is None


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
    told = misspelt_keyword(schema)
    assert told is not None
    assert told.startswith(f"{place}: is no keyword of JSON Schema")
    assert told.endswith(f"did you mean {hint}?")


def test_schemas_may_be_nested_as_deep_as_somebody_likes() -> None:
    schema: dict[str, Any] = {"requird": []}
    for _ in range(5_000):
        schema = {"not": schema}
    assert misspelt_keyword(schema) is not None


def test_a_schema_of_nothing_but_unknown_words_is_refused_before_all_are_compared() -> None:
    many = misspelt_keyword({f"word{number}": 1 for number in range(100_000)})
    assert many is not None
    assert "more than 2,000 words that are no keywords" in many
    assert misspelt_keyword({"properties": {f"p{number}": {"note": ""} for number in range(5_000)}}) is None
    assert misspelt_keyword({"remark" * 1_000: 1, "x-" + "y" * 1_000: 2}) is None


def test_a_schema_that_holds_itself_is_looked_at_once() -> None:
    endless: dict[str, Any] = {"type": "object"}
    endless["not"] = endless
    assert misspelt_keyword(endless) is None
    endless["properties"] = {"a": {"anyOf": [endless, {"requird": []}]}}
    told = misspelt_keyword(endless)
    assert told is not None
    assert told.startswith("properties.a.anyOf[1].requird:")


def test_a_part_that_stands_in_many_places_is_looked_at_once() -> None:
    part: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        part = {"allOf": [part, part]}
    assert misspelt_keyword(part) is None
