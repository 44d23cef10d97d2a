"""Scales, weights and coverage."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalstudio.evaluators.criteria import (
    CriterionScore,
    EvaluationCriteria,
    Excluded,
    check_unique,
    normalize,
    on_scale,
    weigh,
)


def criterion(scale: str = "numeric", **fields: Any) -> EvaluationCriteria:
    return EvaluationCriteria(name=fields.pop("name", "c"), scale=scale, **fields)


@pytest.mark.parametrize(
    ("scale", "score", "number"),
    [
        ("binary", True, 1),
        ("binary", 0, 0),
        ("binary", " YES ", 1),
        ("pass/fail", "Fail", 0),
        ("pass/fail", "1", 1),
        ("likert5", 1, 0),
        ("likert5", 5, 1),
        ("likert5", "4 stars", 0.75),
        ("likert5", 2.5, 0.375),
        ("likert5", True, 1),
        ("likert5", False, 0),
        ("numeric", 0.25, 0.25),
        ("numeric", 1, 1),
        ("numeric", "75%", 0.75),
        ("numeric", "1%", 0.01),
        ("numeric", 75, 0.75),
        ("numeric", 1.0000000000000002, 1),
        ("numeric", -1e-12, 0),
        ("numeric", True, 1),
        ("string", "pass", 1),
        ("my-scale", False, 0),
    ],
)
def test_a_score_is_brought_to_0_to_1_by_its_scale(scale: str, score: Any, number: float) -> None:
    assert normalize(score, criterion(scale)) == pytest.approx(number, abs=1e-9)


@pytest.mark.parametrize(
    ("scale", "score"),
    [
        ("binary", "y"),
        ("binary", 0.5),
        ("binary", ""),
        ("likert5", 6),
        ("likert5", 0),
        ("likert5", "stars: 4"),
        ("numeric", 101),
        ("numeric", -1),
        ("numeric", "none"),
        ("numeric", math.nan),
        ("numeric", math.inf),
        ("numeric", "1e999"),
        ("my-scale", "3"),
        ("my-scale", 3),
        ("my-scale", "good"),
    ],
)
def test_what_has_no_place_on_the_scale_is_excluded_with_a_reason(scale: str, score: Any) -> None:
    with pytest.raises(Excluded, match=r"\w"):
        normalize(score, criterion(scale))


def test_a_range_is_linear_and_clamped() -> None:
    ten = criterion(range=(0, 10))
    assert normalize(8, ten) == 0.8
    assert normalize(-3, ten) == 0
    assert normalize("12 points", ten) == 1
    assert normalize(3, criterion("stars", range=(1, 5))) == 0.5


def test_labels_stand_for_numbers() -> None:
    mood = criterion("mood", labels={"Good": 1.0, "so-so": 0.4, "naïve": 0.2})
    assert normalize(" good ", mood) == 1.0
    assert normalize("SO-SO", mood) == 0.4
    assert normalize("nai\u0308ve", mood) == 0.2
    assert normalize("pass", mood) == 1.0


@pytest.mark.parametrize(
    "fields",
    [
        {"name": " "},
        {"name": "c", "weight": -1},
        {"name": "c", "weight": math.inf},
        {"name": "c", "weight": math.nan},
        {"name": "c", "range": [5, 5]},
        {"name": "c", "range": [0, math.inf]},
        {"name": "c", "labels": {"great": 2}},
        {"name": "c", "wieght": 2},
        {"name": "c", "scale": ""},
    ],
)
def test_a_criterion_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EvaluationCriteria.model_validate(fields)


def test_names_are_unique() -> None:
    with pytest.raises(ValueError, match='"c" is declared twice'):
        check_unique([criterion(), criterion()])


class TestWeighing:
    def test_results_on_one_criterion_are_averaged_before_weights_apply(self) -> None:
        a, b = criterion(name="a"), criterion(name="b")
        judged = [
            CriterionScore("a", 1),
            CriterionScore("a", 1),
            CriterionScore("a", 1),
            CriterionScore("b", 0),
        ]
        overall, means, coverage = weigh(judged, [a, b])
        assert overall == 0.5
        assert means == {"a": 1, "b": 0}
        assert (coverage.criteria, coverage.scored) == (2, 2)

    def test_what_is_left_out_is_counted_with_its_reason(self) -> None:
        criteria = [criterion(name=n) for n in ("a", "b", "c", "d")]
        judged = [
            CriterionScore("a", 0.5),
            CriterionScore("b", 900),
            CriterionScore("c", None, error="broken"),
            CriterionScore("d", None, skipped=True),
            CriterionScore("elsewhere", 1),
        ]
        overall, _, coverage = weigh(judged, criteria)
        assert overall == 0.5
        assert coverage.to_json() == {
            "criteria": 4,
            "scored": 1,
            "missing": ["b", "c", "d"],
            "unknown": ["elsewhere"],
            "excluded": [
                {
                    "criterionName": "b",
                    "score": 900,
                    "reason": "900 is outside 0–100 and the criterion declares no range",
                }
            ],
            "errors": 1,
            "skipped": 1,
        }

    def test_an_unbounded_sum_needs_a_range(self) -> None:
        free, bounded = criterion(name="free"), criterion(name="bounded", range=(-10, 10))
        overall, means, coverage = weigh(
            [CriterionScore("free", 1, unbounded=True), CriterionScore("bounded", 0, unbounded=True)],
            [free, bounded],
        )
        assert overall == 0.5
        assert means == {"bounded": 0.5}
        assert coverage.excluded[0]["reason"] == "an unbounded sum needs a range on its criterion"

    def test_weights_of_zero_leave_no_overall_score(self) -> None:
        overall, means, _ = weigh([CriterionScore("c", 1)], [criterion(weight=0)])
        assert overall is None
        assert means == {"c": 1}

    def test_nothing_judged_is_no_score(self) -> None:
        assert weigh([], [criterion()])[0] is None
        assert weigh([], [])[0] is None

    def test_huge_weights_do_not_overflow(self) -> None:
        heavy = [criterion(name="a", weight=1e308), criterion(name="b", weight=1e308)]
        assert weigh([CriterionScore("a", 1), CriterionScore("b", 0)], heavy)[0] == 0.5


# --- properties -------------------------------------------------------------------------------------

scales = st.sampled_from(["numeric", "likert5", "binary", "pass/fail", "string", "stars"])
bounds = st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)).map(lambda lw: (lw[0], lw[0] + lw[1]))


@given(scales, st.none() | bounds)
def test_a_perfect_fraction_is_1_on_every_scale(scale: str, limits: tuple[float, float] | None) -> None:
    c = criterion(scale, range=limits)
    assert normalize(on_scale(1.0, c), c) == pytest.approx(1.0)
    assert normalize(on_scale(0.0, c), c) == pytest.approx(0.0)


@given(bounds, st.floats(-1e7, 1e7), st.floats(-1e7, 1e7))
def test_normalisation_is_monotone_where_a_range_is_declared(
    limits: tuple[float, float], one: float, other: float
) -> None:
    low, high = sorted((one, other))
    for scale in ("numeric", "stars"):
        c = criterion(scale, range=limits)
        assert 0 <= normalize(low, c) <= normalize(high, c) <= 1


@given(st.floats(1, 5), st.floats(1, 5))
def test_likert_is_monotone(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert normalize(low, criterion("likert5")) <= normalize(high, criterion("likert5"))


@given(scales, st.booleans() | st.integers() | st.floats() | st.text(max_size=20))
def test_a_normalised_score_is_never_outside_0_to_1(scale: str, score: Any) -> None:
    with contextlib.suppress(Excluded):
        assert 0 <= normalize(score, criterion(scale)) <= 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1)), max_size=12), st.randoms())
def test_the_order_of_results_does_not_matter(pairs: list[tuple[str, float]], random: Any) -> None:
    criteria = [criterion(name=n, weight=w) for n, w in (("a", 1), ("b", 2), ("c", 0))]
    judged = [CriterionScore(name, score) for name, score in pairs]
    shuffled = random.sample(judged, len(judged))
    assert weigh(judged, criteria)[0] == weigh(shuffled, criteria)[0]
