"""Texts cut to what can be shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstudio.base.text import cut, excerpt


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
