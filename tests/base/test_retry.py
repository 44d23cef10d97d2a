"""Waiting before another try: what the server asks for, read in all its forms, and what doubles."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstudio.base.retry import backoff, retry_after, spread

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "3"}, 3.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"RETRY-AFTER": "0"}, 0.0),
        ({"Retry-After": "١٢"}, 12.0),
        ({"Retry-After": "Sun, 01 Mar 2026 12:00:20 GMT"}, 20.0),
        ({"Retry-After": "Sun, 01 Mar 2026 11:59:00 GMT"}, 0.0),
        ({"Retry-After": "Sun Mar  1 12:00:05 2026"}, 5.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "tomorrow"}, None),
        ({"Retry-After": "Tue, 99 Foo 99999999"}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "9" * 400}, None),
        ({}, None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_milliseconds_or_a_date(
    headers: dict[str, str] | None, seconds: float | None
) -> None:
    assert retry_after(headers, NOON) == seconds


@given(st.integers(1, 10_000), st.floats(0.001, 10), st.floats(10, 1000))
def test_a_wait_begins_with_the_first_doubles_and_has_an_end(
    retry: int, first: float, longest: float
) -> None:
    wait = backoff(retry, first, longest)
    assert backoff(1, first, longest) == first
    assert first <= wait <= longest
    assert backoff(retry + 1, first, longest) in (wait, min(longest, 2 * wait))


def test_waits_differ_without_changing_what_a_seed_yields() -> None:
    before = random.getstate()
    numbers = {spread() for _ in range(10)}
    assert len(numbers) == 10
    assert all(0 <= number < 1 for number in numbers)
    assert random.getstate() == before
