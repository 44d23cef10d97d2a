"""A text that readers of JSON would read differently is told from one that they all read alike."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as some

from evalstudio.base.json_text import UnclearJson, json_once

BLANKS = some.sampled_from(["", "", " ", "\t", "\n "])
# Each ends or begins with what a quick look at quotes could take for something else.
KEYS = some.sampled_from(["a", "b", "\\u0061", 'c\\"', "d\\\\", 'e\\\\\\":', "", "ü"])
PLAIN = some.sampled_from(['"x"', "1", '"a\\":"', '"\\\\"', '"\\\\\\":"', '" :"', '"\\u0022:"', "null", '""'])


def objects(inner: some.SearchStrategy[str]) -> some.SearchStrategy[str]:
    fields = some.lists(some.tuples(BLANKS, KEYS, BLANKS, inner), max_size=3)
    return fields.map(
        lambda pairs: "{" + ",".join(f'{a}"{key}"{b}:{b}{value}{a}' for a, key, b, value in pairs) + "}"
    )


def lists(inner: some.SearchStrategy[str]) -> some.SearchStrategy[str]:
    return some.lists(inner, max_size=3).map(lambda items: "[" + ",".join(items) + "]")


TEXTS = some.recursive(PLAIN, lambda inner: objects(inner) | lists(inner), max_leaves=8)


class TwiceError(Exception):
    pass


def checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise TwiceError
    return dict(pairs)


@given(TEXTS, some.booleans())
def test_a_key_that_is_there_twice_is_found_and_no_other(text: str, as_bytes: bool) -> None:
    given = text.encode() if as_bytes else text
    try:
        expected = json.loads(text, object_pairs_hook=checked)
    except TwiceError:
        with pytest.raises(UnclearJson, match="is there twice"):
            json_once(given)
    else:
        assert json_once(given) == expected


@pytest.mark.parametrize("text", ['{"a":1,"a":1}', '[{"a":"x"},{"b":{"c":[{"d":1,"d":"\\\\"}]}}]'])
def test_a_key_twice_is_found_at_any_depth(text: str) -> None:
    with pytest.raises(UnclearJson):
        json_once(text)


@pytest.mark.parametrize("number", ["1" * 5000, "1e400", "-0.0", "1" * 40])
def test_a_number_that_readers_differ_in_raises_nothing_else(number: str) -> None:
    """What follows makes it a text that is read a second time."""
    text = f'{{"a":{number},"b":"\\\\"}}'
    try:
        json_once(text)
    except orjson.JSONDecodeError:
        assert len(number) > 1000 or "e" in number
    with pytest.raises((UnclearJson, orjson.JSONDecodeError)):
        json_once(text.replace('"b"', '"a"'))


def test_what_is_too_deep_to_tell_is_unclear() -> None:
    with pytest.raises(ValueError, match=r"nested|recursion|depth"):
        json_once('{"a":' * 100_000 + "1" + "}" * 100_000)
