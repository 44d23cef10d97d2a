"""A drop is judged against what a subject did before."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.support.references import Reference

from evalstudio.reporting.flakiness import History, drop_probability, judge_drops

scipy: Any = Reference("scipy.stats")


@pytest.mark.parametrize(
    "history",
    [
        History(10, 10, 0, 1),
        History(30, 30, 2, 3),
        History(15, 30, 0, 5),
        History(9, 10, 3, 3),
        History(0, 4, 0, 4),
    ],
)
def test_the_chance_is_fishers(history: History) -> None:
    table = [
        [history.candidate_passed, history.candidate_scored - history.candidate_passed],
        [history.passed, history.scored - history.passed],
    ]
    expected = float(scipy.fisher_exact(table, alternative="less").pvalue)
    assert drop_probability(history) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("history", "verdict"),
    [
        (History(100, 100, 0, 1), "beyond"),
        (History(100, 100, 2, 3), "beyond"),
        (History(10, 10, 0, 1), "unknown"),
        (History(1, 1, 0, 1), "unknown"),
        (History(0, 0, 0, 3), "unknown"),
        (History(5, 10, 0, 1), "explained"),
        (History(27, 30, 2, 3), "explained"),
        (History(27, 30, 0, 3), "beyond"),
        (History(9, 10, 3, 3), "none"),
        (History(0, 10, 0, 3), "none"),
        (History(0, 0, 1, 1), "none"),
        (History(4, 5, 0, 0), "none"),
    ],
)
def test_a_verdict_needs_history(history: History, verdict: str) -> None:
    (drop,) = judge_drops([history])
    assert drop.verdict == verdict


def test_one_failure_after_ten_passes_has_a_chance_of_one_in_eleven() -> None:
    assert drop_probability(History(10, 10, 0, 1)) == pytest.approx(1 / 11)


def test_among_many_subjects_the_same_drop_says_less() -> None:
    drop = History(30, 30, 1, 3)
    alone = judge_drops([drop])[0]
    among_many = judge_drops([drop, *[History(29, 30, 3, 3)] * 99])[0]
    assert (alone.verdict, among_many.verdict) == ("beyond", "unknown")
    assert alone.p == among_many.p < among_many.adjusted_p


def test_flaky_subjects_that_did_not_change_are_rarely_beyond() -> None:
    random = Random(11)
    wrong = 0
    for _ in range(2000):
        rate = random.betavariate(4, 1)
        passed = sum(random.random() < rate for _ in range(30))
        now = sum(random.random() < rate for _ in range(3))
        wrong += judge_drops([History(passed, 30, now, 3)])[0].verdict == "beyond"
    assert wrong <= 0.06 * 2000
