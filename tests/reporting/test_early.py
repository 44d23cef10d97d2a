"""Deciding every kind of requirement while looking after every repetition."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import pytest

from evalstudio.evaluators.results import Outcome, RunOutput, Verdict
from evalstudio.project.entities import RunSummary
from evalstudio.project.requirements import Requirement, read_requirement
from evalstudio.reporting.early import EarlyDecisions
from evalstudio.reporting.early_rules import Observation, rule_for
from evalstudio.reporting.evidence import Baseline, ExecutionEvidence
from evalstudio.reporting.requirements import judge

REPETITIONS = 20
SUBJECTS = 12

Agent = Callable[[Random, int], Observation]


def passing(*rates: float) -> Agent:
    """An agent whose subjects pass at these rates, one after the other."""

    def observe(random: Random, subject: int) -> Observation:
        return Observation("pass" if random.random() < rates[subject % len(rates)] else "fail")

    return observe


def scoring(low: float, high: float) -> Agent:
    return lambda random, subject: Observation("pass", criteria={"tone": random.uniform(low, high)})


def taking(mean: float) -> Agent:
    """Latencies with a long tail."""
    return lambda random, subject: Observation("pass", metrics={"latencyMs": random.expovariate(1 / mean)})


def baseline(random: Random, agent: Agent, repetitions: int = REPETITIONS) -> Baseline:
    base = Baseline("main")
    for repetition in range(1, repetitions + 1):
        for subject in range(SUBJECTS):
            base.add(_run(subject, agent(random, subject).outcome, repetition))
    return base


@cache
def _run(subject: int, outcome: Outcome | None, repetition: int) -> RunSummary:
    """Made once: simulations take the same runs by the hundred thousand."""
    return run(subject, outcome, repetition)


def run(subject: int, outcome: Outcome | None, repetition: int = 1, **more: Any) -> RunSummary:
    verdict = None if outcome is None else Verdict(outcome=outcome)
    name = f"s{subject}"
    return RunSummary(
        execution_id="x", scenario_id=name, scenario_name=name, repetition=repetition, result=verdict, **more
    )


def executions(
    text: str, agent: Agent, base: Agent | None, *, seed: int, number: int
) -> tuple[int, int, float]:
    """How many simulated executions found it met and missed early, and the share of runs that it took."""
    random, requirement = Random(seed), read_requirement(text)
    met = missed = rounds = 0
    for _ in range(number):
        baselines = {} if base is None else {"main": baseline(random, base)}
        rule = rule_for(requirement, baselines)
        while rule.decision is None and rule.rounds < REPETITIONS:
            rule.add_round({(f"s{one}", None, None, None): agent(random, one) for one in range(SUBJECTS)})
        met += rule.decision == "met"
        missed += rule.decision == "missed"
        rounds += rule.rounds
    return met, missed, rounds / number / REPETITIONS


MEDIAN_100 = 100 / 0.6931471805599453

# What is required, an agent right at its limit, and which decision would be wrong there.
AT_THE_LIMIT = [
    ("passRate>=0.8", passing(0.9999, 0.5999), None, "met"),
    ("passRate>=0.8", passing(1.0, 0.6), None, "missed"),
    ("passHatK>=0.5,k=2", passing(0.9999**0.5, 0.0), None, "met"),
    ("passHatK>=0.729,k=3", passing(0.9), None, "missed"),
    ("metric=latencyMs,percentile=50,max=99.99", taking(MEDIAN_100), None, "met"),
    ("metric=latencyMs,percentile=95,max=299.6", taking(100), None, "missed"),
    ("metric=latencyMs,percentile=50,min=50,max=99.99", taking(MEDIAN_100), None, "met"),
    ("metric=latencyMs,max=100", taking(100), None, "missed"),
    ("metric=latencyMs,min=100.01", taking(100), None, "met"),
    ("criterion=tone,min=0.6001", scoring(0.4, 0.8), None, "met"),
    ("criterion=tone,max=0.6", scoring(0.4, 0.8), None, "missed"),
    ("noRegression=main", passing(0.9, 0.5), passing(0.9, 0.5), "missed"),
    ("noRegression=main,minEffect=0.1", passing(0.7999, 0.4), passing(0.9, 0.5), "met"),
]


def wrong_decisions(case: tuple[str, Agent, Agent | None, str], number: int) -> int:
    text, agent, base, wrong = case
    met, missed, _ = executions(text, agent, base, seed=11, number=number)
    decisions = met if wrong == "met" else missed
    print(f"{text}: wrongly {wrong} in {decisions / number:.2%} of {number:,} executions")
    return decisions


@pytest.mark.parametrize("case", AT_THE_LIMIT[::2], ids=lambda case: f"{case[0]} {case[3]}")
def test_looking_after_every_repetition_is_wrong_in_at_most_5_percent(
    case: tuple[str, Agent, Agent | None, str],
) -> None:
    assert wrong_decisions(case, 60) <= 0.05 * 60


@pytest.mark.soak
@pytest.mark.parametrize("case", AT_THE_LIMIT, ids=lambda case: f"{case[0]} {case[3]}")
def test_looking_is_wrong_in_at_most_5_percent_of_2000_executions(
    case: tuple[str, Agent, Agent | None, str],
) -> None:
    assert wrong_decisions(case, 2000) <= 0.05 * 2000


@pytest.mark.parametrize(
    ("text", "agent", "base", "decision"),
    [
        ("passHatK>=0.5,k=2", passing(0.98), None, "met"),
        ("passHatK>=0.9,k=3", passing(0.7), None, "missed"),
        ("metric=latencyMs,percentile=50,max=200", taking(100), None, "met"),
        ("metric=latencyMs,percentile=95,max=100", taking(100), None, "missed"),
        ("metric=latencyMs,percentile=50,min=10,max=200", taking(100), None, "met"),
        ("metric=latencyMs,max=50", taking(100), None, "missed"),
        ("metric=latencyMs,min=50", taking(100), None, "met"),
        ("criterion=tone,min=0.5", scoring(0.6, 1.0), None, "met"),
        ("criterion=tone,min=0.5,max=0.95", scoring(0.0, 0.6), None, "missed"),
        ("noRegression=main", passing(0.5), passing(0.9), "missed"),
        ("noRegression=main,minEffect=0.3", passing(0.9), passing(0.9), "met"),
    ],
)
def test_clear_cases_need_less_than_half_of_the_runs(
    text: str, agent: Agent, base: Agent | None, decision: str
) -> None:
    met, missed, share = executions(text, agent, base, seed=12, number=20)
    assert (met if decision == "met" else missed) >= 0.9 * 20
    assert share < 0.5


def decided(requirements: list[Requirement], runs: list[RunSummary], **more: Any) -> EarlyDecisions:
    early = EarlyDecisions(requirements, REPETITIONS, **more)
    for one in runs:
        early.add(one)
    early.close_round()
    return early


@pytest.mark.soak
def test_the_same_agent_is_called_worse_in_at_most_5_percent_with_the_test_at_the_end() -> None:
    random, agent = Random(13), passing(0.9, 0.5)
    requirement = read_requirement("noRegression=main")
    missed = 0
    for _ in range(2000):
        base = {"main": baseline(random, agent, 5)}
        runs = [
            _run(subject, agent(random, subject).outcome, repetition)
            for repetition in range(1, 6)
            for subject in range(SUBJECTS)
        ]
        early = decided([requirement], runs, baselines=base)
        evidence = ExecutionEvidence([requirement], baselines=base)
        for one in runs:
            evidence.add(one)
        [result] = early.settled(judge(early.for_the_end(), evidence))
        missed += result.standing == "missed"
    print(f"the same agent was called worse in {missed / 2000:.2%} of 2,000 comparisons")
    assert missed <= 0.05 * 2000


def test_a_block_with_a_failure_is_decided_whatever_the_errored_run_would_have_been() -> None:
    rule = rule_for(read_requirement("passHatK>=0.9,k=2"), {})
    for _ in range(10):
        rule.add_round({one: Observation("fail") for one in range(6)})
        rule.add_round({one: Observation("error") for one in range(6)})
    assert rule.decision == "missed"


@pytest.mark.parametrize(
    "text",
    ["passRate>=0.5", "passHatK>=0.5,k=2", "criterion=tone,min=0.1", "metric=latencyMs,percentile=50,max=9"],
)
def test_errors_decide_nothing(text: str) -> None:
    rule = rule_for(read_requirement(text), {})
    for _ in range(50):
        rule.add_round({one: Observation("error") for one in range(10)})
    assert rule.decision is None


def test_subjects_without_a_criterion_do_not_hold_it_up() -> None:
    rule = rule_for(read_requirement("criterion=tone,min=0.5"), {})
    for _ in range(6):
        has = {one: Observation("pass", criteria={"tone": 0.95}) for one in range(6)}
        rule.add_round({**has, **{one: Observation("pass") for one in range(6, 30)}})
    assert rule.decision == "met"


def test_a_value_that_is_missing_once_counts_against_the_decision() -> None:
    rule = rule_for(read_requirement("criterion=tone,min=0.5"), {})
    rule.add_round({one: Observation("pass", criteria={"tone": 1.0}) for one in range(2)})
    for _ in range(20):
        rule.add_round({one: Observation("pass") for one in range(2)})
    assert rule.decision is None


def test_too_many_flaky_subjects_are_missed_and_a_flaky_one_is_not_repeated() -> None:
    requirement = read_requirement("maxFlaky<=1")
    early = decided([requirement], [run(0, "pass"), run(1, "pass"), run(0, "fail", 2), run(1, "pass", 2)])
    assert [key[0] for key in early.open_subjects()] == ["s1"]
    early.add(run(1, "fail", 3))
    early.close_round()
    assert not early.open_subjects()
    assert early.runs == 5


@pytest.mark.parametrize("text", ["maxErrors<=0", "maxErrors<=10%", "minCoverage>=0.9"])
def test_what_is_counted_keeps_nothing_going(text: str) -> None:
    assert not decided([read_requirement(text)], [run(0, "pass")]).open_subjects()


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("metric=words,max<=5", "no known ends"),
        ("metric=latencyMs,max<=500", "one value may be huge"),
        ("metric=turns,min>=3", "one value may be huge"),
        ("maxFlaky<=0", "may find a flaky subject"),
        ("noRegression=main", "shows only at the end"),
        ("noRegression=gone", "there is no such baseline"),
    ],
)
def test_what_no_rule_decides_stays_open_and_is_named(text: str, because: str) -> None:
    base = {"main": baseline(Random(1), passing(1.0), 2)}
    runs = [run(one, "pass", n, latency_ms=5.0, turn_count=1) for n in range(1, 6) for one in range(3)]
    early = decided([read_requirement(text)], runs, baselines=base)
    assert len(early.open_subjects()) == 3
    [saved, note] = early.notes()
    assert saved == "5 of at most 20 repetitions: 15 of 60 runs were enough; 45 were saved"
    assert note.startswith(f"{text} stayed open for all repetitions: ")
    assert because in note


def test_agents_errors_count_as_failures_where_that_is_asked_for() -> None:
    errors = [
        RunSummary(
            execution_id="x",
            scenario_id="a",
            scenario_name="a",
            repetition=number,
            result=Verdict(outcome="error", fault="agent"),
        )
        for number in range(1, 11)
    ]
    requirement = read_requirement("passRate>=0.9")
    assert decided([requirement], errors).open_subjects()
    assert not decided([requirement], errors, agent_errors_fail=True).open_subjects()


def test_metrics_of_evaluators_are_read_from_outputs() -> None:
    early = EarlyDecisions([read_requirement("metric=words,percentile=50,max=5")], 20)
    for number in range(1, 21):
        early.add(run(0, "pass", number), RunOutput(metrics={"words": 3.0}))
    early.close_round()
    assert not early.open_subjects()
