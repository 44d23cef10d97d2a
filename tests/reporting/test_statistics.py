"""Honest numbers: intervals, rates that say what they cover, flakiness."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstudio.project.entities import Counts, Subject
from evalstudio.reporting.statistics import Rate, clustered_rate, flakiest, summarize
from evalstudio.storage.contract import RunGroup


def rate(passed: int, of: int) -> Rate:
    """The rate of subjects that ran once each."""
    return clustered_rate({(1, 1): passed, (0, 1): of - passed})


def wilson(passed: int, of: int) -> tuple[float, float]:
    share = rate(passed, of)
    return share.low, share.high


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
    share = rate(*pair)
    assert 0 <= share.low <= share.high <= 1
    if share.rate is not None:
        assert share.low <= share.rate <= share.high


@given(st.integers(1, 200), st.integers(2, 5))
def test_more_of_the_same_narrows_it(of: int, times: int) -> None:
    low, high = wilson(of // 2, of)
    narrow_low, narrow_high = wilson(of // 2 * times, of * times)
    assert narrow_high - narrow_low <= high - low + 1e-12


def subject(name: str = "s", connector: str = "c", case: str | None = None) -> Subject:
    return Subject(
        scenario_id=f"id of {name}",
        scenario_name=name,
        case_name=case,
        persona_id=None,
        persona_name=None,
        connector_id=f"id of {connector}",
        connector_name=connector,
    )


def run(
    outcome: Any, name: str = "s", *, connector: str = "c", execution: str = "x", **more: Any
) -> RunGroup:
    status = {None: "cancelled", "error": "error"}.get(outcome, "completed")
    fields: dict[str, Any] = {
        "execution_id": execution,
        "subject": subject(name, connector),
        "status": status,
        "outcome": outcome,
        "fault": None,
        "runs": 1,
        "max_latency_ms": None,
        "tokens": None,
        "runs_with_tokens": 0,
    }
    return RunGroup(**fields | more)


def flaky(*runs: RunGroup) -> list[str]:
    return [one.subject.label for one in summarize(runs).flaky]


def test_an_error_is_neither_pass_nor_failure() -> None:
    runs = [
        run("pass"),
        run("fail"),
        run("error", fault="agent"),
        run("error", fault="judge"),
        run("error"),
        run(None),
        run("unasserted"),
        run(None, status="queued", runs=3),
        run(None, status="running", runs=2),
    ]
    summary = summarize(runs)
    assert summary.counts == Counts(
        total=12, queued=3, running=2, passed=1, failed=1, errored=3, cancelled=1, unasserted=1
    )
    assert summary.counts.finished == 7
    assert summary.errors_by_fault == {"agent": 1, "judge": 1, "system": 1}
    scored, attempted = summary.pass_rate_of_scored, summary.pass_rate_of_attempted
    assert (scored.passed, scored.of) == (1, 2)
    assert (attempted.passed, attempted.of) == (1, 5)


def test_repetitions_of_a_subject_are_not_independent_runs() -> None:
    repeated = [run("pass", name, runs=3) for name in "abcd"] + [run("fail", name, runs=3) for name in "ef"]
    summary = summarize(repeated)
    share = summary.pass_rate_of_scored
    assert (share.passed, share.of) == (12, 18)
    assert (share.low, share.high) == pytest.approx(wilson(4, 6))
    with_errors = summarize([*repeated, run("error", "g", runs=3), run("error", "h", runs=3)])
    attempted = with_errors.pass_rate_of_attempted
    assert (attempted.low, attempted.high) == pytest.approx(wilson(4, 8))


def test_agent_errors_can_be_counted_as_failures() -> None:
    runs = [run("pass"), run("error", fault="agent"), run("error", fault="judge")]
    summary = summarize(runs, agent_errors_fail=True)
    assert summary.counts.failed == 1
    assert summary.errors_by_fault == {"judge": 1}
    assert summary.pass_rate_of_scored.of == 2


class TestFlakiness:
    def test_is_what_both_passed_and_failed(self) -> None:
        assert flaky(run("pass", "a"), run("fail", "a"), run("pass", "b"), run("error", "b")) == ["a · c"]
        assert flaky(run("fail"), run("error"), run(None)) == []
        assert flaky(run("pass", runs=4)) == []

    def test_is_within_one_subject_on_one_connector_in_one_execution(self) -> None:
        assert flaky(run("pass", connector="c"), run("fail", connector="d")) == []
        assert flaky(run("pass", subject=subject(case="1")), run("fail", subject=subject(case="2"))) == []
        assert flaky(run("pass", execution="x"), run("fail", execution="y")) == []

    def test_counts_all_runs_of_the_subject(self) -> None:
        runs = [run("pass", runs=2), run("fail"), run("error"), run(None, status="queued")]
        summary = summarize(runs)
        [one] = summary.flaky
        assert (one.runs, one.passed, one.failed) == (5, 2, 1)
        assert summary.flaky_runs == 5

    def test_over_time_is_the_share_of_executions_that_could_have_shown_it(self) -> None:
        runs = [
            *(run(outcome, "often", execution="1") for outcome in ("pass", "fail")),
            *(run(outcome, "often", execution="2") for outcome in ("fail", "pass")),
            run("pass", "often", execution="3"),
            *(run(outcome, "rarely", execution="1") for outcome in ("pass", "fail")),
            run("pass", "rarely", execution="2", runs=2),
            run("pass", "changed", execution="1", runs=3),
            run("fail", "changed", execution="2", runs=3),
            *(run(outcome, "broken", execution="1") for outcome in ("pass", "error")),
        ]
        histories = flakiest(runs, 5)
        assert [(one.subject.scenario_name, one.flaky_executions, one.executions) for one in histories] == [
            ("often", 2, 2),
            ("rarely", 1, 2),
        ]
        assert len(flakiest(runs, 1)) == 1

    def test_a_renamed_scenario_keeps_its_history(self) -> None:
        renamed = subject().model_copy(update={"scenario_name": "new name"})
        runs = [run("pass"), run("fail")]
        runs += [run(outcome, subject=renamed, execution="y") for outcome in ("pass", "fail")]
        [one] = flakiest(runs, 5)
        assert (one.subject.scenario_name, one.executions) == ("new name", 2)


def test_slowest_and_tokens() -> None:
    runs = [run("pass", f"s{n}", max_latency_ms=float(n), tokens=n, runs_with_tokens=1) for n in range(5)] + [
        run("pass", "s4", max_latency_ms=3.5)
    ]
    summary = summarize(runs)
    assert [(one.subject.scenario_name, one.latency_ms) for one in summary.slowest] == [
        ("s4", 4.0),
        ("s3", 3.0),
        ("s2", 2.0),
    ]
    assert (summary.tokens, summary.runs_with_tokens) == (10, 5)
    assert summarize([run("pass")]).tokens is None


def test_nothing_at_all() -> None:
    summary = summarize([])
    assert summary.pass_rate_of_scored.rate is None
    assert summary.counts == Counts()


@pytest.mark.parametrize(
    ("counts", "standing"),
    [
        ({"passed": 2, "failed": 1, "errored": 1}, "fail"),
        ({"passed": 2, "errored": 1, "cancelled": 1}, "error"),
        ({"passed": 2, "cancelled": 1}, "cancelled"),
        ({"failed": 2, "queued": 1}, "running"),
        ({"queued": 1}, "queued"),
        ({"queued": 1, "running": 1}, "running"),
        ({"passed": 1, "unasserted": 2}, "pass"),
        ({"unasserted": 1}, "unasserted"),
        ({}, "unasserted"),
    ],
)
def test_many_runs_in_one_word(counts: dict[str, int], standing: str) -> None:
    assert Counts(total=sum(counts.values()), **counts).standing == standing
