"""Placeholders in a text: one form, filled in one pass, in linear time."""

from __future__ import annotations

from time import perf_counter

import pytest

from evalstudio.base.placeholders import fill, names_in, only_placeholder, written


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("{{a}} and {{ b.c[0] }}", ["a", "b.c[0]"]),
        ("{{\n a \t}}", ["a"]),
        ("{{}} {{ }}", ["", ""]),
        ("{{{a}}}", ["a"]),
        ("{{a} } {a}} {{a", []),
        ("{{a b}}", ["a b"]),
    ],
)
def test_names_are_found_in_order(text: str, names: list[str]) -> None:
    assert names_in(text) == names


def test_values_are_not_filled_again_and_what_has_none_stays() -> None:
    values = {"a": "{{b}}", "b": "\\1"}
    assert fill("{{a}}|{{ b }}|{{ c }}", values.get) == "{{b}}|\\1|{{ c }}"


def test_a_placeholder_alone_is_told_from_one_in_a_text() -> None:
    assert only_placeholder("{{ a }}") == "a"
    assert only_placeholder("{{a}}{{b}}") is None
    assert only_placeholder(" {{a}}") is None


def test_other_values_are_written_as_json() -> None:
    assert [written(value) for value in ("ü", None, [1, "ü"], True)] == ["ü", "null", '[1,"ü"]', "true"]


def test_braces_that_never_close_cost_no_time() -> None:
    start = perf_counter()
    assert names_in("{{" + " " * 200_000) == []
    assert names_in("{{" * 100_000) == []
    assert perf_counter() - start < 20
