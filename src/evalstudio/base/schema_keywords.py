"""Keywords of a JSON Schema that check nothing where they stand, and say nothing of it.

JSON Schema takes every word it does not know for a remark. One that is almost a keyword, that other libraries
use for one, or that holds a schema is a mistake; any other stays a remark. A keyword that the schema's draft
does not have, or that lacks the one it belongs to, is taken for a remark as well.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from .problems import FieldPath, path_text
from .text import cut

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
_NO_KEYWORD = "is no keyword of JSON Schema, so it would check nothing"
_TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))

_DRAFTS = {"draft-04": 4, "draft-06": 6, "draft-07": 7, "draft/2019-09": 2019, "draft/2020-12": 2020}
_NAMES = {2019: "2019-09", 2020: "2020-12"}
_DRAFT = re.compile(r"https?://json-schema\.org/(draft[-/][\d-]+)/schema#?")
_NEWEST = 2020
# The drafts that check a keyword, from and to.
_CHECKED_IN = {
    **dict.fromkeys(("const", "contains", "propertyNames"), (6, _NEWEST)),
    **dict.fromkeys(("if", "then", "else"), (7, _NEWEST)),
    **dict.fromkeys(("minContains", "maxContains", "dependentRequired", "dependentSchemas"), (2019, _NEWEST)),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), (2019, _NEWEST)),
    **dict.fromkeys(("prefixItems", "$dynamicRef"), (2020, _NEWEST)),
    "$recursiveRef": (2019, 2019),
}
_BELONGS_TO = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}
_BESIDE_REFERENCE = frozenset(_CHECKING) - {"$ref", "$defs", "definitions"}
FORMATS = (
    *("date", "date-time", "time", "duration", "email", "idn-email", "hostname", "idn-hostname"),
    *("ipv4", "ipv6", "uri", "uri-reference", "iri", "iri-reference", "uri-template", "json-pointer"),
    *("relative-json-pointer", "regex", "uuid"),
)
# Of OpenAPI, pydantic and Gemini: they say how a value is written or kept, beside a type that is checked.
_REMARKED_FORMATS = frozenset(
    (
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double"),
        *("double-int", "decimal", "decimal128", "unixtime", "char", "enum", "html", "commonmark"),
        *("byte", "binary", "base64", "base64url", "password", "path", "file-path", "directory-path"),
        *("json-string", "multi-host-uri", "name-email", "color", "ipv4network", "ipv6network"),
        *("ipv4interface", "ipv6interface", "ipvanyaddress", "ipvanynetwork", "ipvanyinterface"),
        *(f"uuid{version}" for version in range(1, 9)),
    )
)
_FORMATS_ELSEWHERE = {"url": "uri", "datetime": "date-time", "timestamp": "date-time", "ip": "ipv4"}


def ineffective_keyword(schema: object) -> str | None:
    """The first keyword of a schema that would check nothing, with its place and what to do, in words."""
    draft, unknown = _draft(schema), _UnknownWords()
    for place, part in _parts(schema):
        for word, value in part.items():
            told = _without_effect(word, part, draft) if word in _KNOWN else unknown.mistake(word, value)
            if told is not None:
                return f"{path_text(_Place(place, word).path())}: {told}"
    return None


class _UnknownWords:
    """The words of a schema that are no keywords, each compared with the keywords once."""

    def __init__(self) -> None:
        self._keywords: dict[str, str | None] = {}

    def mistake(self, word: str, value: object) -> str | None:
        if word.lower().startswith("x-"):
            return None
        if word not in self._keywords:
            self._keywords[word] = _keyword_like(word)
        if len(self._keywords) > _MOST_UNKNOWN:
            return f"one of more than {_MOST_UNKNOWN:,} words that are no keywords; begin remarks with x-"
        return _meant(self._keywords[word], value)


def _draft(schema: object) -> int:
    """The draft that a schema names; the newest where it names none, or one that nobody knows."""
    named: object = cast(Mapping[str, Any], schema).get("$schema") if isinstance(schema, Mapping) else None
    known = _DRAFT.fullmatch(named) if isinstance(named, str) else None
    return _DRAFTS.get(known.group(1), _NEWEST) if known else _NEWEST


def _without_effect(word: str, part: Mapping[str, Any], draft: int) -> str | None:
    """Why a keyword checks nothing where it stands."""
    first, last = _CHECKED_IN.get(word, (0, _NEWEST))
    if not first <= draft <= last:
        return f"checks nothing in {_named(draft)} of JSON Schema; {_other_draft(first, last)}"
    if draft <= 7 and "$ref" in part and word in _BESIDE_REFERENCE:
        return f"checks nothing beside $ref in {_named(draft)}; put both into allOf, or leave out $schema"
    if (needed := _BELONGS_TO.get(word)) is not None and needed not in part:
        return f"checks nothing without {needed} beside it"
    if word == "additionalItems" and not isinstance(part.get("items"), list):
        return "checks nothing unless items is a list; did you mean items?"
    if word == "contentSchema":
        return "is not checked: text inside of JSON is not read; have an evaluator look at it"
    return _unchecked_format(part[word]) if word == "format" else None


def _named(draft: int) -> str:
    return f"draft {_NAMES.get(draft, draft)}"


def _other_draft(first: int, last: int) -> str:
    if last < _NEWEST:
        return f"name {_named(last)} in $schema, or write $dynamicRef"
    return f"leave out $schema, or name {_named(first)} or a newer one in it"


def _unchecked_format(name: object) -> str | None:
    if not isinstance(name, str) or name in FORMATS or name in _REMARKED_FORMATS:
        return None
    if name.lower().startswith("x-"):
        return None
    near = difflib.get_close_matches(name[:_LONGEST].lower(), FORMATS, 1, _SIMILARITY)
    meant = _FORMATS_ELSEWHERE.get(name.lower()) or next(iter(near), None)
    advice = (
        f"did you mean {meant}?" if meant else "write a pattern, or a name that begins with x- as a remark"
    )
    return f'"{cut(name, _LONGEST)}" is no format that is checked; {advice}'


def _keyword_like(word: str) -> str | None:
    if len(word) > _LONGEST:
        return None
    if (keyword := _NAMES_ELSEWHERE.get(word.lower())) is not None:
        return keyword
    near = difflib.get_close_matches(word, _NEAR, 1, _SIMILARITY)
    return next(iter(near), None) or next((known for known in _NEAR if known.lower() == word.lower()), None)


def _meant(keyword: str | None, value: object) -> str | None:
    if keyword is not None:
        return f"{_NO_KEYWORD}; did you mean {keyword}?"
    kind: object = cast(Mapping[str, Any], value).get("type") if isinstance(value, Mapping) else None
    if not isinstance(kind, str) or kind not in _TYPES:
        return None
    return f"{_NO_KEYWORD}; did you mean it as one of properties?"


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
        if isinstance(part, list | Mapping):
            seen.add(id(cast(object, part)))
        if isinstance(part, list):
            items = cast(list[object], part)
            waiting += [(_Place(place, number), item) for number, item in enumerate(items)]
        elif isinstance(part, Mapping):
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
