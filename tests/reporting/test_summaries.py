"""Figures over runs, number by number."""

from __future__ import annotations

from typing import Any

import pytest
from tests.reporting.test_statistics import flaky, rate, run, subject, wilson

from evalstudio.evaluators.results import Verdict
from evalstudio.project.entities import Counts, RunSummary
from evalstudio.reporting.intervals import wilson_interval
from evalstudio.reporting.spending import spending_by_role
from evalstudio.reporting.statistics import clustered_rate, flakiest, group_of, rates_of, summarize
from evalstudio.storage.contract import RepetitionCounts, Subject

WHOLE = Subject(
    scenario_id="s1",
    scenario_name="Booking",
    case_name="one",
    persona_id="p1",
    persona_name="Ada",
    connector_id="c1",
    connector_name="Agent",
)


class TestRates:
    def test_a_rate_as_json_has_every_field_by_its_name(self) -> None:
        share = rate(1, 4)
        sent = share.model_dump(by_alias=True)
        assert sent == {"passed": 1, "of": 4, "rate": 0.25, "low": share.low, "high": share.high}
        assert (share.low, share.high) == wilson(1, 4)

    def test_the_interval_is_the_one_of_95_percent(self) -> None:
        assert wilson(81, 263) == pytest.approx((0.255289, 0.366210), abs=1e-6)
        assert wilson(1, 3) == pytest.approx((0.061492, 0.792340), abs=1e-6)

    def test_all_and_none_reach_the_ends_exactly(self) -> None:
        for of in (1, 2, 7, 1000):
            assert wilson(0, of)[0] == 0.0
            assert wilson(of, of)[1] == 1.0
            assert 0 < wilson(0, of)[1] < 1
            assert 0 < wilson(of, of)[0] < 1

    def test_a_wider_level_gives_a_wider_interval_within_0_and_1(self) -> None:
        wide = wilson_interval(0.5, 2, 0.9999)
        assert 0 <= wide.low < wilson(1, 2)[0]
        assert wilson(1, 2)[1] < wide.high <= 1

    def test_runs_that_asserted_nothing_or_were_cancelled_are_in_no_rate(self) -> None:
        scored, attempted = rates_of({RepetitionCounts(5, 3, 4): 1, RepetitionCounts(0, 0, 0): 8})
        assert (scored.passed, scored.of) == (5, 8)
        assert (attempted.passed, attempted.of) == (5, 12)


def finished(**more: Any) -> RunSummary:
    parts = {
        "execution_id": "x",
        "scenario_id": "s1",
        "scenario_name": "Booking",
        "case_name": "one",
        "persona_id": "p1",
        "persona_name": "Ada",
        "connector_id": "c1",
        "connector_name": "Agent",
    }
    return RunSummary.model_validate(parts | more)


class TestOneRun:
    def test_it_is_a_group_with_all_it_came_to(self) -> None:
        verdict = Verdict(outcome="error", fault="agent")
        group = group_of(finished(status="error", result=verdict, latency_ms=20.5, total_tokens=7))
        assert (group.execution_id, group.status, group.runs) == ("x", "error", 1)
        assert (group.outcome, group.fault) == ("error", "agent")
        assert (group.max_latency_ms, group.tokens, group.runs_with_tokens) == (20.5, 7, 1)
        assert group.subject == WHOLE
        assert group.spent.finished == 1

    def test_before_its_end_it_has_no_outcome(self) -> None:
        group = group_of(finished(status="running"))
        assert (group.status, group.outcome, group.fault) == ("running", None, None)
        assert (group.max_latency_ms, group.tokens, group.runs_with_tokens) == (None, None, 0)

    def test_tokens_of_nought_were_counted(self) -> None:
        assert summarize([group_of(finished(total_tokens=0))]).tokens == 0


class TestSummaries:
    def test_a_summary_as_json_has_every_field_by_its_name(self) -> None:
        runs = [
            run("pass", subject=WHOLE, runs=2, max_latency_ms=3.0, tokens=5, runs_with_tokens=2),
            run("fail", subject=WHOLE, max_latency_ms=9.0),
            run("error", "b", runs=2),
            run("error", "b", fault="judge"),
            run("unasserted", "c"),
        ]
        parts = {
            "label": "Booking · one · Ada · Agent",
            "scenarioId": "s1",
            "scenarioName": "Booking",
            "caseName": "one",
            "personaId": "p1",
            "personaName": "Ada",
            "connectorId": "c1",
            "connectorName": "Agent",
        }
        summary = summarize(runs)
        sent = summary.model_dump(by_alias=True)
        assert sent.pop("counts") == summary.counts.model_dump(by_alias=True)
        assert sent == {
            "errorsByFault": {"system": 2, "judge": 1},
            "passRateOfScored": clustered_rate([(2, 3)]).model_dump(by_alias=True),
            "passRateOfAttempted": clustered_rate([(2, 3), (0, 3)]).model_dump(by_alias=True),
            "flaky": [{"subject": parts, "runs": 3, "passed": 2, "failed": 1}],
            "flakyRuns": 3,
            "slowest": [{"subject": parts, "latencyMs": 9.0}],
            "tokens": 5,
            "runsWithTokens": 2,
            "usage": [one.model_dump(by_alias=True) for one in spending_by_role(runs)],
        }

    def test_runs_are_counted_by_group(self) -> None:
        runs = [
            run("unasserted", runs=2),
            run("fail", runs=3),
            run("error", runs=4),
            run(None, runs=5),
        ]
        assert summarize(runs).counts == Counts(total=14, failed=3, errored=4, cancelled=5, unasserted=2)

    def test_by_itself_an_agents_error_is_no_failure(self) -> None:
        assert summarize([run("error", fault="agent")]).counts.failed == 0

    def test_only_errors_of_the_agent_become_failures(self) -> None:
        runs = [run("pass", fault="agent"), run("error", fault="judge"), run("error", fault="agent")]
        counts = summarize(runs, agent_errors_fail=True).counts
        assert (counts.passed, counts.failed, counts.errored) == (1, 1, 1)

    def test_an_agents_error_that_counts_as_a_failure_makes_its_subject_flaky(self) -> None:
        runs = [run("pass", "a"), run("error", "a", fault="agent")]
        assert summarize(runs).flaky == []
        assert [one.subject.label for one in summarize(runs, agent_errors_fail=True).flaky] == ["a · c"]

    def test_flaky_subjects_are_in_order_and_errors_beside_them_change_nothing(self) -> None:
        runs = [
            *(run(outcome, "b") for outcome in ("pass", "fail", "error")),
            *(run(outcome, "a") for outcome in ("fail", "pass", None)),
            *(run(outcome, "d") for outcome in ("pass", "error", None)),
            run("fail", "e", runs=3),
        ]
        assert flaky(*runs) == ["a · c", "b · c"]
        assert summarize(runs).flaky_runs == 6


class TestSlowest:
    def slowest(self, *runs: Any) -> list[tuple[str, float]]:
        return [(one.subject.scenario_name, one.latency_ms) for one in summarize(runs).slowest]

    def test_three_are_shown_each_subject_once_by_its_slowest_run(self) -> None:
        runs = [run("pass", f"s{n}", max_latency_ms=float(n)) for n in range(5)]
        more = [run("fail", "s4", max_latency_ms=3.5), run("fail", "s0", max_latency_ms=9.0)]
        assert self.slowest(*runs, *more) == [("s0", 9.0), ("s4", 4.0), ("s3", 3.0)]

    def test_no_time_at_all_is_a_time_and_an_unknown_one_is_none(self) -> None:
        assert self.slowest(run("pass", "a", max_latency_ms=0.0), run("pass", "b")) == [("a", 0.0)]

    def test_of_two_as_slow_the_first_by_name_comes_first(self) -> None:
        runs = [run("pass", name, max_latency_ms=5.0) for name in ("b", "c", "a", "d")]
        assert [name for name, _ in self.slowest(*runs)] == ["a", "b", "c"]

    def test_of_two_as_slow_of_one_subject_the_name_it_had_first_stays(self) -> None:
        renamed = subject().model_copy(update={"scenario_name": "new name"})
        runs = [run("pass", max_latency_ms=5.0), run("pass", subject=renamed, max_latency_ms=5.0)]
        assert self.slowest(*runs) == [("s", 5.0)]


class TestHistories:
    def test_the_largest_share_comes_first_then_the_most_executions_then_the_name(self) -> None:
        def repeated(name: str, flaky_in: int, steady_in: int) -> list[Any]:
            shaky = [
                run(outcome, name, execution=f"flaky {number}")
                for number in range(flaky_in)
                for outcome in ("pass", "fail")
            ]
            return shaky + [
                run("pass", name, execution=f"steady {number}", runs=2) for number in range(steady_in)
            ]

        runs = [
            *repeated("half of two", 1, 1),
            *repeated("one of one", 1, 0),
            *repeated("half of four", 2, 2),
            *repeated("also one of one", 1, 0),
            *repeated("never", 0, 3),
        ]
        assert [
            (one.subject.scenario_name, one.flaky_executions, one.executions) for one in flakiest(runs, 9)
        ] == [
            ("also one of one", 1, 1),
            ("one of one", 1, 1),
            ("half of four", 2, 4),
            ("half of two", 1, 2),
        ]

    def test_an_execution_with_one_scored_run_says_nothing(self) -> None:
        runs = [*(run(outcome, execution="1") for outcome in ("pass", "fail"))]
        runs += [run("pass", execution="2"), run("error", execution="2"), run("fail", execution="3", runs=2)]
        [history] = flakiest(runs, 5)
        assert (history.flaky_executions, history.executions) == (1, 2)
        assert history.subject == subject()
