"""One path language: read strictly, followed leniently, over dicts, lists and models alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from evalstudio.base.paths import MISSING, follow, lookup, read_path


class Order(BaseModel):
    model_config = ConfigDict(extra="allow")

    line_items: list[str] = []


@dataclass
class Reply:
    thread_id: str = "t1"


DATA: dict[str, Any] = {
    "a": {"b": [{"c": 1}, {"c": 2}], "the key": "x", "0": "zero", "": "empty"},
    "a.b": "dotted",
    "tuple": (1, 2),
    "order": Order.model_validate({"line_items": ["tea"], "note": "hi"}),
    "reply": Reply(),
    "$ref": "r",
    "none": None,
}


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("", ()),
        ("$", ()),
        (" a ", ("a",)),
        ("a.b[-1].c", ("a", "b", -1, "c")),
        ("$.a.b", ("a", "b")),
        ("$[0]", (0,)),
        ("$ref", ("$ref",)),
        (".a", ("a",)),
        ("a[0][1]", ("a", 0, 1)),
        ("a.[0]", ("a", 0)),
        ("a.0", ("a", "0")),
        ("""a["b.c"]['d[e"']""", ("a", "b.c", 'd[e"')),
        ("a.$.b", ("a", "$", "b")),
        ('a[""]', ("a", "")),
        ("two words.ü", ("two words", "ü")),
    ],
)
def test_a_path_is_read_into_its_steps(path: str, steps: tuple[str | int, ...]) -> None:
    assert read_path(path) == steps


@pytest.mark.parametrize("path", ["a[", "a]", "a[b]", "a..b", "a.", "a['b\"]", "[-]", "a[1.5]", '"a"'])
def test_what_cannot_be_read_is_named_with_the_place(path: str) -> None:
    with pytest.raises(ValueError, match="is not a path such as") as caught:
        read_path(path)
    assert f'"{path}"' in str(caught.value)
    assert lookup(DATA, path) is MISSING


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b[0].c", 1),
        ("a.b[-1].c", 2),
        ("a.b.1.c", 2),
        ("a.b.-1.c", 2),
        ('a["the key"]', "x"),
        ("a.the key", "x"),
        ("a[0]", "zero"),
        ('a[""]', "empty"),
        ("a.b", "dotted"),
        ('["a"].b[0]', {"c": 1}),
        ("tuple[1]", 2),
        ("order.lineItems[0]", "tea"),
        ("order.line_items[0]", "tea"),
        ("order.note", "hi"),
        ("reply.threadId", "t1"),
        ("$ref", "r"),
        ("none", None),
        ("", DATA),
    ],
)
def test_a_path_leads_to_its_value_and_a_key_written_like_it_comes_first(path: str, value: Any) -> None:
    assert lookup(DATA, path) == value


@pytest.mark.parametrize(
    "path",
    [
        "b",
        "a.x",
        "a.b[2]",
        "a.b[-3]",
        "a.b.x",
        "a.b.1x",
        "tuple[9]",
        "order.model_fields",
        "reply.x",
        "none.x",
        "a.b[" + "9" * 30 + "]",
        "a.b." + "9" * 5000,
    ],
)
def test_where_the_way_ends_there_is_nothing(path: str) -> None:
    assert lookup(DATA, path) is MISSING


NAMES = st.text(min_size=1).filter(lambda text: not set(text) & set(".[]\"'$") and text == text.strip())


@given(st.lists(NAMES | st.integers(-5, 5), max_size=6))
def test_what_is_written_step_by_step_is_read_back(steps: list[str | int]) -> None:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    assert read_path(text) == tuple(steps)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(ANYTHING, st.lists(st.text(max_size=3) | st.integers(), max_size=4))
def test_following_never_raises_whatever_the_data_is(value: Any, steps: list[str | int]) -> None:
    follow(value, steps)


@given(ANYTHING, st.text(max_size=12))
def test_looking_up_never_raises_whatever_the_path_is(value: Any, path: str) -> None:
    lookup(value, path)
