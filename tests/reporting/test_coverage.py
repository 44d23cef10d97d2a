"""Simulated executions: intervals hold the truth as often as they say, and tests are wrong as rarely.

Subjects have pass rates from a beta distribution, so that repetitions of one subject agree more than runs of
different ones. The wider grid runs with the soak tests.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import cache
from random import Random
from statistics import NormalDist

import pytest

from evalstudio.reporting.agreement import kappa
from evalstudio.reporting.flakiness import History, judge_drops
from evalstudio.reporting.intervals import Interval, mean_interval, percentile_interval, rate_interval
from evalstudio.reporting.paired import Comparison, Pair, compare_rates, compare_values
from evalstudio.reporting.repetitions import bootstrap_interval, pass_at_k, pass_hat_k

ROUNDS = 2000


class Agent:
    """An agent whose subjects differ: a small `likeness` makes each subject pass nearly always or never."""

    def __init__(self, seed: int, rate: float, likeness: float | None) -> None:
        self.random = Random(seed)
        self.rate = rate
        self.likeness = likeness

    def subject_rate(self) -> float:
        if self.likeness is None:
            return self.rate
        return self.random.betavariate(self.rate * self.likeness, (1 - self.rate) * self.likeness)

    def passes(self, rate: float, runs: int) -> int:
        return sum(self.random.random() < rate for _ in range(runs))

    def repetitions(self, number: int | None) -> int:
        return self.random.randint(1, 5) if number is None else number

    def subjects(self, number: int, repetitions: int | None) -> list[tuple[int, int]]:
        runs = [self.repetitions(repetitions) for _ in range(number)]
        return [(self.passes(self.subject_rate(), one), one) for one in runs]


def covered(truth: float, interval: Callable[[], Interval], rounds: int = ROUNDS) -> float:
    """In what percentage of rounds the interval holds the truth."""
    intervals = (interval() for _ in range(rounds))
    return 100 * sum(one.low <= truth <= one.high for one in intervals) / rounds


@cache
def rate_of(subjects: tuple[tuple[tuple[int, int], int], ...]) -> Interval:
    return rate_interval(list(Counter(dict(subjects)).elements()))


def rate_coverage(agent: Agent, subjects: int, repetitions: int | None, rounds: int = ROUNDS) -> float:
    def interval() -> Interval:
        return rate_of(tuple(sorted(Counter(agent.subjects(subjects, repetitions)).items())))

    return covered(agent.rate, interval, rounds)


@pytest.mark.parametrize(
    ("subjects", "repetitions", "rate", "likeness"),
    [
        (20, 1, 0.5, 2.0),
        (20, 3, 0.5, None),
        (20, 3, 0.7, 2.0),
        (20, None, 0.8, 0.5),
        (30, 5, 0.8, 10.0),
        (30, 2, 0.3, 0.5),
        (50, None, 0.9, 2.0),
        (100, 3, 0.95, 0.5),
    ],
)
def test_rates(subjects: int, repetitions: int | None, rate: float, likeness: float | None) -> None:
    assert 93 <= rate_coverage(Agent(1, rate, likeness), subjects, repetitions) <= 97


@pytest.mark.parametrize(("subjects", "rate"), [(5, 0.5), (8, 0.8), (12, 0.9), (20, 0.95)])
def test_rates_of_few_subjects_and_near_the_ends_err_on_the_wide_side(subjects: int, rate: float) -> None:
    assert rate_coverage(Agent(2, rate, 2.0), subjects, 3) >= 95


@pytest.mark.soak
@pytest.mark.parametrize("subjects", [20, 30, 50, 100])
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("likeness", [None, 10.0, 2.0, 0.5])
@pytest.mark.parametrize("repetitions", [2, 3, 5, None])
def test_rates_on_the_whole_grid(
    subjects: int, rate: float, likeness: float | None, repetitions: int | None
) -> None:
    coverage = rate_coverage(Agent(3, rate, likeness), subjects, repetitions)
    # With fewer than five subjects that are expected to have the rarer outcome it errs on the wide side. Half
    # a point at either end is for the chance of 2,000 rounds in the worst of 448 cases.
    near_an_end = subjects * min(rate, 1 - rate) < 5
    assert 92.5 <= coverage <= (99 if near_an_end else 97.5)


@cache
def share_interval(shares: tuple[tuple[float, int], ...]) -> Interval:
    return bootstrap_interval(Counter(dict(shares)), draws=400)


def pass_k_coverage(agent: Agent, subjects: int, k: int, *, hat: bool, rounds: int = ROUNDS) -> float:
    """Three repetitions have four possible shares, so that the same bootstrap serves many rounds."""
    estimator = pass_hat_k if hat else pass_at_k
    assert agent.likeness is not None
    passing, failing = agent.rate * agent.likeness, (1 - agent.rate) * agent.likeness
    all_pass = math.prod((passing + j) / (agent.likeness + j) for j in range(k))
    all_fail = math.prod((failing + j) / (agent.likeness + j) for j in range(k))

    def interval() -> Interval:
        shares = Counter(estimator(passed, runs, k) or 0.0 for passed, runs in agent.subjects(subjects, 3))
        return share_interval(tuple(sorted(shares.items())))

    return covered(all_pass if hat else 1 - all_fail, interval, rounds)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("subjects", "k", "rate", "likeness", "hat"),
    [(20, 2, 0.7, 2.0, True), (20, 2, 0.5, 10.0, False), (40, 2, 0.8, 2.0, True), (40, 3, 0.6, 2.0, False)],
)
def test_pass_at_k_and_pass_hat_k(subjects: int, k: int, rate: float, likeness: float, hat: bool) -> None:
    assert 93 <= pass_k_coverage(Agent(4, rate, likeness), subjects, k, hat=hat) <= 97


def test_pass_hat_k_of_few_subjects_errs_on_the_wide_side() -> None:
    assert pass_k_coverage(Agent(5, 0.8, 2.0), 8, 2, hat=True) >= 95


class Latencies:
    """Latencies with a long upper tail: lognormal, a share of the spread between subjects."""

    def __init__(self, seed: int, between: float, within: float) -> None:
        self.random = Random(seed)
        self.between, self.within = between, within
        self.sigma = math.hypot(between, within)

    def subjects(self, number: int, repetitions: int | None) -> list[list[float]]:
        return [
            self.subject(self.random.randint(1, 5) if repetitions is None else repetitions)
            for _ in range(number)
        ]

    def subject(self, runs: int) -> list[float]:
        level = self.random.gauss(0, self.between)
        return [math.exp(level + self.random.gauss(0, self.within)) for _ in range(runs)]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("subjects", "repetitions", "between", "within"),
    [(20, 1, 0.4, 0.2), (20, 3, 0.4, 0.4), (40, None, 0.3, 0.5)],
)
def test_means(subjects: int, repetitions: int | None, between: float, within: float) -> None:
    latencies = Latencies(6, between, within)
    truth = math.exp(latencies.sigma**2 / 2)
    assert 93 <= covered(truth, lambda: mean_interval(latencies.subjects(subjects, repetitions))) <= 97


def test_means_of_few_subjects_err_on_the_wide_side() -> None:
    random = Random(7)
    assert covered(0.0, lambda: mean_interval([[random.gauss(0, 1)] for _ in range(5)])) >= 95


@pytest.mark.soak
@pytest.mark.parametrize(
    ("subjects", "repetitions", "share"),
    [(20, 1, 0.5), (20, 3, 0.5), (60, 1, 0.9), (20, 1, 0.95), (40, None, 0.95)],
)
def test_percentiles(subjects: int, repetitions: int | None, share: float) -> None:
    latencies = Latencies(8, 0.4, 0.4)
    truth = math.exp(NormalDist(0, latencies.sigma).inv_cdf(share))
    coverage = covered(truth, lambda: percentile_interval(latencies.subjects(subjects, repetitions), share))
    assert 93 <= coverage <= 97


@pytest.mark.soak
@pytest.mark.parametrize("subjects", [20, 40, 100])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.95])
def test_percentiles_on_the_whole_grid(subjects: int, share: float) -> None:
    latencies = Latencies(9, 0.5, 0.3)
    truth = math.exp(NormalDist(0, latencies.sigma).inv_cdf(share))
    coverage = covered(truth, lambda: percentile_interval(latencies.subjects(subjects, None), share))
    assert 93 <= coverage <= 99


def comparison(agent: Agent, subjects: int, repetitions: int | None, *, factor: float = 1.0) -> Comparison:
    """The agent against itself, or against one that passes less often by a factor."""
    pairs: list[Pair] = []
    for _ in range(subjects):
        rate = agent.subject_rate()
        before, after = agent.repetitions(repetitions), agent.repetitions(repetitions)
        pairs.append(Pair(agent.passes(rate, before), before, agent.passes(rate * factor, after), after))
    return compare_rates(pairs)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("subjects", "repetitions", "rate", "likeness"),
    [(20, 1, 0.5, None), (20, 3, 0.8, 2.0), (20, None, 0.7, 10.0), (40, 5, 0.7, 2.0)],
)
def test_comparisons_of_an_agent_with_itself(
    subjects: int, repetitions: int | None, rate: float, likeness: float | None
) -> None:
    agent = Agent(10, rate, likeness)
    results = [comparison(agent, subjects, repetitions) for _ in range(ROUNDS)]
    assert sum(one.p <= 0.05 for one in results) <= 0.06 * ROUNDS
    assert sum(one.p_worse <= 0.05 for one in results) <= 0.06 * ROUNDS
    assert (
        0.93 * ROUNDS
        <= sum(one.difference.low <= 0 <= one.difference.high for one in results)
        <= 0.975 * ROUNDS
    )


def test_comparisons_with_few_subjects_are_rarely_wrong() -> None:
    agent = Agent(11, 0.8, 2.0)
    results = [comparison(agent, 8, 3) for _ in range(ROUNDS)]
    assert sum(one.p <= 0.05 for one in results) <= 0.05 * ROUNDS
    assert sum(one.difference.low <= 0 <= one.difference.high for one in results) >= 0.95 * ROUNDS


def test_a_real_difference_lies_in_its_interval() -> None:
    agent = Agent(12, 0.8, 2.0)
    results = [comparison(agent, 25, 3, factor=0.8).difference for _ in range(ROUNDS)]
    assert 0.93 * ROUNDS <= sum(one.low <= -0.16 <= one.high for one in results) <= 0.97 * ROUNDS


def test_measurements_that_did_not_change() -> None:
    latencies = Latencies(13, 0.4, 0.4)

    def result() -> Comparison:
        return compare_values([before - after for before, after in latencies.subjects(25, 2)])

    assert sum(result().p <= 0.05 for _ in range(ROUNDS)) <= 0.06 * ROUNDS


def test_the_same_noisy_agent_is_not_flagged_and_a_worsened_one_is() -> None:
    agent = Agent(14, 0.8, 3.0)
    same = sum(comparison(agent, 30, 5).p_worse <= 0.05 for _ in range(200))
    worsened = sum(comparison(agent, 30, 5, factor=0.75).p_worse <= 0.05 for _ in range(200))
    assert same <= 0.06 * 200
    assert worsened >= 0.95 * 200


def test_subjects_that_broke_are_told_from_flaky_ones() -> None:
    """Of 30 subjects with 40 earlier runs each, two that always passed now fail; the others are the same."""
    agent = Agent(15, 0.8, 3.0)
    found = false = 0
    for _ in range(200):
        histories = [History(40, 40, 0, 5)] * 2
        for _ in range(28):
            rate = agent.subject_rate()
            histories.append(History(agent.passes(rate, 40), 40, agent.passes(rate, 5), 5))
        verdicts = [drop.verdict for drop in judge_drops(histories)]
        found += verdicts[:2].count("beyond")
        false += "beyond" in verdicts[2:]
    assert found == 400
    assert false <= 0.06 * 200


@pytest.mark.parametrize(("items", "likeness", "most"), [(30, 0.6, 2), (50, 0.8, 3), (100, 0.3, 2)])
def test_kappa(items: int, likeness: float, most: int) -> None:
    random = Random(16)

    def pair() -> tuple[int, int]:
        first = random.randrange(most)
        return first, first if random.random() < likeness else random.randrange(most)

    assert 93 <= covered(likeness, lambda: kappa([pair() for _ in range(items)], scale=range(most))) <= 97


def test_kappa_of_few_items_and_of_a_rare_mark_errs_on_the_wide_side() -> None:
    random = Random(17)

    def mark() -> int:
        return int(random.random() < 0.2)

    def pair() -> tuple[int, int]:
        first = mark()
        return first, first if random.random() < 0.3 else mark()

    assert covered(0.3, lambda: kappa([pair() for _ in range(20)])) >= 95
    assert covered(0.3, lambda: kappa([pair() for _ in range(8)])) >= 95
