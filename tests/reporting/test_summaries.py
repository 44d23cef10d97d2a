"""Summaries of runs, number by number."""

from __future__ import annotations

import pytest
from tests.reporting.test_statistics import run

from evalstudio.reporting.statistics import Z_95, ExecutionSummary, RunFacts, rate, summarize, wilson


def test_a_rate_as_json_has_every_field_by_its_name() -> None:
    share = rate(1, 4)
    assert share.to_json() == {"passed": 1, "of": 4, "rate": 0.25, "low": share.low, "high": share.high}


def test_the_interval_is_the_one_of_95_percent() -> None:
    assert wilson(5, 10) == wilson(5, 10, 1.959963984540054) == wilson(5, 10, Z_95)
    assert wilson(81, 263) == pytest.approx((0.255289, 0.366210), abs=1e-6)
    assert wilson(1, 3) == pytest.approx((0.061492, 0.792340), abs=1e-6)


def test_all_and_none_reach_the_ends_exactly() -> None:
    for of in (1, 2, 7, 1000):
        assert wilson(0, of)[0] == 0.0
        assert wilson(of, of)[1] == 1.0
        assert 0 < wilson(0, of)[1] < 1
        assert 0 < wilson(of, of)[0] < 1


def test_a_wider_level_gives_a_wider_interval_within_0_and_1() -> None:
    low, high = wilson(1, 2, 1000.0)
    assert 0 <= low < wilson(1, 2)[0]
    assert wilson(1, 2)[1] < high <= 1


def test_a_run_says_nothing_that_it_was_not_given() -> None:
    facts = RunFacts(id="1", subject="s", outcome="pass")
    assert (facts.fault, facts.asserted, facts.latency_ms, facts.tokens, facts.reason) == (
        None,
        True,
        None,
        None,
        "",
    )


def test_an_empty_summary() -> None:
    summary = ExecutionSummary()
    assert (summary.runs, summary.unasserted, summary.tokens, summary.with_tokens) == (0, 0, 0, 0)
    for share in (summary.of_scored, summary.of_attempted):
        assert (share.passed, share.of, share.low, share.high) == (0, 0, 0.0, 1.0)


def test_a_summary_as_json_has_every_field_by_its_name() -> None:
    runs = [
        run(1, "pass", "a", latency_ms=3.0, tokens=5),
        run(2, "fail", "a", latency_ms=9.0),
        run(3, "error", "b"),
        run(4, "error", "b", fault="judge"),
        run(5, "pass", "c", asserted=False),
        run(6, None, "c"),
        run(7, "pass", "d"),
    ]
    summary = summarize(runs)
    assert summary.to_json() == {
        "runs": 7,
        "counts": {"pass": 3, "fail": 1, "error": 2, "cancelled": 1},
        "errorsByFault": {"system": 1, "judge": 1},
        "withoutAssertions": 1,
        "passRateOfScored": rate(2, 3).to_json(),
        "passRateOfAttempted": rate(2, 5).to_json(),
        "flaky": ["a"],
        "slowest": [{"subject": "a", "latencyMs": 9.0}, {"subject": "a", "latencyMs": 3.0}],
        "tokens": 5,
    }


def test_tokens_of_nought_were_counted() -> None:
    assert summarize([run(1, "pass", tokens=0)]).to_json()["tokens"] == 0


def test_only_a_pass_can_be_without_assertions() -> None:
    runs = [run(1, "fail", asserted=False), run(2, "error", asserted=False), run(3, None, asserted=False)]
    assert summarize(runs).unasserted == 0


def test_a_cancelled_run_is_in_no_rate() -> None:
    summary = summarize([run(1, None), run(2, "pass")])
    assert (summary.of_scored.of, summary.of_attempted.of) == (1, 1)


def test_of_the_slowest_three_are_shown() -> None:
    runs = [run(number, "pass", f"s{number}", latency_ms=float(number)) for number in range(5)]
    assert summarize(runs).slowest == [("s4", 4.0), ("s3", 3.0), ("s2", 2.0)]


def test_by_itself_an_agents_error_is_no_failure() -> None:
    assert summarize([run(1, "error", fault="agent")]).counts["fail"] == 0


def test_only_errors_of_the_agent_become_failures() -> None:
    runs = [run(1, "pass", fault="agent"), run(2, "error", fault="judge"), run(3, "error", fault="agent")]
    counts = summarize(runs, agent_errors_fail=True).counts
    assert counts == {"pass": 1, "fail": 1, "error": 1, "cancelled": 0}


def test_an_agents_error_that_counts_as_a_failure_makes_its_subject_flaky() -> None:
    runs = [run(1, "pass", "a"), run(2, "error", "a", fault="agent")]
    assert summarize(runs).flaky == []
    assert summarize(runs, agent_errors_fail=True).flaky == ["a"]


def test_flaky_subjects_are_in_order_and_an_error_beside_them_changes_nothing() -> None:
    runs = [
        *(run(number, outcome, "b") for number, outcome in enumerate(("pass", "fail", "error"))),
        *(run(number, outcome, "a") for number, outcome in enumerate(("fail", "pass", None))),
        *(run(number, outcome, "c") for number, outcome in enumerate(("pass", "error", None))),
        *(run(number, "fail", "d") for number in range(3)),
    ]
    assert summarize(runs).flaky == ["a", "b"]
