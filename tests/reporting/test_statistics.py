"""Honest numbers: intervals, rates that say what they cover, flakiness."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstudio.reporting.statistics import RunFacts, rate, summarize, wilson


@pytest.mark.parametrize(
    ("passed", "of", "low", "high"),
    [
        (0, 0, 0.0, 1.0),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (81, 263, 0.2553, 0.3662),
        (1, 1, 0.2065, 1.0),
    ],
)
def test_wilson_intervals_are_the_published_ones(passed: int, of: int, low: float, high: float) -> None:
    assert wilson(passed, of) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(0, 500).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_an_interval_holds_its_rate_and_stays_within_0_and_1(pair: tuple[int, int]) -> None:
    found = rate(*pair)
    assert 0 <= found.low <= found.high <= 1
    if found.share is not None:
        assert found.low <= found.share <= found.high


@given(st.integers(1, 200), st.integers(2, 5))
def test_more_of_the_same_narrows_it(of: int, times: int) -> None:
    low, high = wilson(of // 2, of)
    narrow_low, narrow_high = wilson(of // 2 * times, of * times)
    assert narrow_high - narrow_low <= high - low + 1e-12


def run(number: int, outcome: str | None, subject: str = "s", **more: Any) -> RunFacts:
    return RunFacts(id=str(number), subject=subject, outcome=outcome, **more)


def test_an_error_is_neither_pass_nor_failure() -> None:
    runs = [
        run(1, "pass"),
        run(2, "fail"),
        run(3, "error", fault="agent"),
        run(4, "error", fault="judge"),
        run(5, None),
        run(6, "pass", asserted=False),
    ]
    summary = summarize(runs)
    assert summary.counts == {"pass": 2, "fail": 1, "error": 2, "cancelled": 1}
    assert summary.faults == {"agent": 1, "judge": 1}
    assert (summary.of_scored.passed, summary.of_scored.of) == (1, 2)
    assert (summary.of_attempted.passed, summary.of_attempted.of) == (1, 4)
    assert summary.unasserted == 1


def test_agent_errors_can_be_counted_as_failures() -> None:
    runs = [run(1, "pass"), run(2, "error", fault="agent"), run(3, "error", fault="judge")]
    summary = summarize(runs, agent_errors_fail=True)
    assert summary.counts["fail"] == 1
    assert summary.faults == {"judge": 1}
    assert summary.of_scored.of == 2


def test_flaky_is_what_both_passed_and_failed() -> None:
    runs = [run(1, "pass", "a"), run(2, "fail", "a"), run(3, "pass", "b"), run(4, "error", "b")]
    assert summarize(runs).flaky == ["a"]


def test_slowest_and_tokens() -> None:
    runs = [run(n, "pass", f"s{n}", latency_ms=float(n), tokens=n) for n in range(5)] + [run(9, "pass")]
    summary = summarize(runs)
    assert [subject for subject, _ in summary.slowest] == ["s4", "s3", "s2"]
    assert summary.tokens == 10
    assert summary.to_json()["tokens"] == 10
    assert summarize([run(1, "pass")]).to_json()["tokens"] is None


def test_nothing_at_all() -> None:
    summary = summarize([])
    assert summary.of_scored.share is None
    assert summary.to_json()["passRateOfScored"]["rate"] is None
