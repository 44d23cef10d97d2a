"""Texts and numbers as they are shown."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstudio.base.text import cut, excerpt, measure, percent, points, printable

# The web UI reads the same cases: web/src/parts/numbers.test.ts.
PERCENTS = json.loads((Path(__file__).parent / "percents.json").read_text())


@given(st.text(), st.integers(1, 50))
def test_nothing_is_longer_than_allowed_and_what_is_missing_is_marked(text: str, most: int) -> None:
    assert len(cut(text, most)) <= most
    assert len(excerpt(text, most)) <= most
    assert cut(text, most) == text or cut(text, most).endswith("…")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("  a\n\tb  c ", "a b c"),
        ("x" * 10, "x" * 10),
        ("x" * 11, "x" * 9 + "…"),
        (" " * 100 + "x", "…"),
        ("a" + " " * 100 + "b", "a…"),
        ("", ""),
    ],
)
def test_an_excerpt_is_one_line(text: str, line: str) -> None:
    assert excerpt(text, 10) == line


@pytest.mark.parametrize(("share", "digits", "text"), PERCENTS)
def test_less_than_all_is_never_all_and_more_than_nothing_never_nothing(
    share: float, digits: Literal[0, 1], text: str
) -> None:
    assert percent(share, digits) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.12345, "0.1235"),
        (12_345.6, "12,346"),
        (-3, "-3"),
        (math.inf, "unknown"),
        (1e6, "1,000,000"),
    ],
)
def test_a_measurement_is_never_written_in_powers_of_ten(value: float | None, text: str) -> None:
    assert measure(value) == text


@given(st.text())
def test_what_is_printable_steers_no_terminal(text: str) -> None:
    shown = printable(text)
    assert len(shown) == len(text)
    assert all(c.isprintable() or c in "\n\t" for c in shown)


@pytest.mark.parametrize(
    ("difference", "text"),
    [(0.25, "+25.0 points"), (-0.001, "-0.1 points"), (0.0, "0 points"), (None, "?")],
)
def test_a_difference_of_shares_is_told_in_points(difference: float | None, text: str) -> None:
    assert points(difference) == text
