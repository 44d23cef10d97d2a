"""Keywords of a JSON Schema that are none: what is misspelt checks nothing, and says nothing of it.

JSON Schema takes every word it does not know for a remark. One that is almost a keyword, that other libraries
use for one, or that holds a schema is a mistake; any other stays a remark.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, cast

from .problems import FieldPath, path_text

_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SCHEMAS = (
    *("additionalProperties", "items", "additionalItems", "contains", "propertyNames", "not", "if", "then"),
    *("else", "unevaluatedItems", "unevaluatedProperties", "contentSchema"),
)
_CHECKING = (
    *("type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
    *("maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "maxContains"),
    *("minContains", "maxProperties", "minProperties", "required", "dependentRequired", "format", "$ref"),
    *("$dynamicRef", "$recursiveRef", *_OF_SCHEMAS, *_LISTS, *_SCHEMAS),
)
# Of the standard, of OpenAPI, and of what tools for forms and models write.
_REMARKS = (
    *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment"),
    *("title", "description", "default", "deprecated", "readOnly", "writeOnly", "examples", "example"),
    *("contentEncoding", "contentMediaType", "nullable", "discriminator", "xml", "externalDocs"),
    *("propertyOrdering", "enumNames", "enumDescriptions", "markdownDescription", "errorMessage", "strict"),
)
_KNOWN = frozenset((*_CHECKING, *_REMARKS))
_NAMES_ELSEWHERE = {"min": "minimum", "max": "maximum", "regex": "pattern", "regexp": "pattern"}
# Shorter ones are too near to plain words: "note" is no "not".
_NEAR = [word for word in _CHECKING if len(word) > 3]
_SIMILARITY = 0.8
_LONGEST = max(map(len, _NEAR)) + 5
# To compare one takes 50 µs; a schema that somebody wrote has few.
_MOST_UNKNOWN = 2_000
_TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))


def misspelt_keyword(schema: object) -> str | None:
    """The first word of a schema that is meant as a keyword and is none, with its place, in words."""
    keywords: dict[str, str | None] = {}
    for place, part in _parts(schema):
        for word, value in part.items():
            if word in _KNOWN or word.lower().startswith("x-"):
                continue
            if word not in keywords:
                keywords[word] = _keyword_like(word)
            if len(keywords) > _MOST_UNKNOWN:
                return f"it has more than {_MOST_UNKNOWN:,} words that are no keywords; begin remarks with x-"
            if hint := _meant(keywords[word], value):
                where = path_text(_Place(place, word).path())
                return f"{where}: is no keyword of JSON Schema, so it would check nothing; {hint}"
    return None


def _keyword_like(word: str) -> str | None:
    if len(word) > _LONGEST:
        return None
    if (keyword := _NAMES_ELSEWHERE.get(word.lower())) is not None:
        return keyword
    near = difflib.get_close_matches(word, _NEAR, 1, _SIMILARITY)
    return next(iter(near), None) or next((known for known in _NEAR if known.lower() == word.lower()), None)


def _meant(keyword: str | None, value: object) -> str | None:
    if keyword is not None:
        return f"did you mean {keyword}?"
    kind: object = cast(Mapping[str, Any], value).get("type") if isinstance(value, Mapping) else None
    return "did you mean it as one of properties?" if isinstance(kind, str) and kind in _TYPES else None


class _Place:
    """Where a part is: a key below another part. A path is made only of the place that is told."""

    __slots__ = ("_above", "_key")

    def __init__(self, above: _Place | None, key: str | int) -> None:
        self._above = above
        self._key = key

    def path(self) -> FieldPath:
        keys = [self._key]
        place = self._above
        while place is not None:
            keys.append(place._key)
            place = place._above
        return tuple(reversed(keys))


def _parts(schema: object) -> Iterator[tuple[_Place | None, Mapping[str, Any]]]:
    """Every schema inside a schema, itself first; however deep, and once if it is in several places."""
    waiting: list[tuple[_Place | None, object]] = [(None, schema)]
    seen: set[int] = set()
    while waiting:
        place, part = waiting.pop()
        if id(part) in seen:
            continue
        if isinstance(part, list):
            seen.add(id(part))
            items = cast(list[object], part)
            waiting += [(_Place(place, number), item) for number, item in enumerate(items)]
        elif isinstance(part, Mapping):
            seen.add(id(part))
            fields = cast(Mapping[str, Any], part)
            yield place, fields
            waiting += [(_Place(place, key), fields[key]) for key in (*_SCHEMAS, *_LISTS) if key in fields]
            for key in _OF_SCHEMAS:
                named: object = fields.get(key)
                if isinstance(named, Mapping):
                    above = _Place(place, key)
                    # A list here names properties and is no schema.
                    waiting += [
                        (_Place(above, str(name)), item)
                        for name, item in cast(Mapping[str, Any], named).items()
                        if not isinstance(item, list)
                    ]
