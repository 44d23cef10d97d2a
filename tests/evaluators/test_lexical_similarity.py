"""Likeness of texts: the algorithms, what counts as the same, and texts of any size."""

from __future__ import annotations

import random
import time
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.aggregate import run_evaluators
from evalstudio.evaluators.builtin.lexical_similarity import dice, lexical_similarity
from evalstudio.evaluators.results import Verdict
from evalstudio.testing import context


async def compare(response: str | None, reference: Any, **config: Any) -> Verdict:
    ctx = context(response, ground_truth=reference)
    return await run_evaluators([lexical_similarity.use(config)], ctx.facts)


async def similarity(response: str, reference: str, **config: Any) -> float | None:
    return (await compare(response, reference, **config)).evaluator_results[0].value


def slow_dice(first: str, second: str) -> float:
    if len(first) < 2 or len(second) < 2:
        return float(first == second)
    ours, theirs = Counter(pairwise(first)), Counter(pairwise(second))
    return 2 * (ours & theirs).total() / (ours.total() + theirs.total())


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("night", "nacht", 0.25),
        ("abcde", "abcfg", 0.5),
        ("aaaa", "aa", 0.5),
        ("aaaa", "a", 0.0),
        ("a", "a", 1.0),
        ("a", "b", 0.0),
        ("", "", 1.0),
        ("", "abc", 0.0),
        ("日本語", "日本人", 0.5),
        ("abc", "äbc", 0.5),
        ("👍👍", "👍👍", 1.0),
    ],
)
def test_dice_counts_shared_bigrams_as_often_as_they_occur(first: str, second: str, expected: float):
    assert dice(first, second) == pytest.approx(expected)
    assert dice(second, first) == pytest.approx(expected)


@given(st.text(alphabet="ab é😀"), st.text(alphabet="ab é😀"))
def test_dice_agrees_with_the_plain_definition(first: str, second: str):
    assert dice(first, second) == pytest.approx(slow_dice(first, second))


@pytest.mark.parametrize("alphabet", ["abcdefgh ", "abcdé日😀"])
def test_dice_agrees_with_the_plain_definition_on_long_texts(alphabet: str):
    chance = random.Random(7)
    for length in (499, 501, 502, 5_001):
        first = "".join(chance.choices(alphabet, k=length))
        second = "".join(chance.choices(alphabet, k=length + 3))
        assert dice(first, second) == pytest.approx(slow_dice(first, second))


def test_dice_takes_half_a_surrogate_pair_as_a_character():
    assert dice("a\ud800b", "a\ud800c") == pytest.approx(0.5)


def test_dice_reads_a_million_characters_in_a_few_seconds():
    first, second = "ab" * 500_000, "ba" * 500_000
    start = time.process_time()
    assert dice(first, second) == pytest.approx(1, abs=1e-5)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("algorithm", "expected"), [("sorensen-dice", 0.4), ("jaro-winkler", 0.961111), ("levenshtein", 2 / 3)]
)
async def test_each_algorithm_measures_in_its_own_way(algorithm: str, expected: float):
    assert await similarity("martha", "marhta", algorithm=algorithm) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("algorithm", ["sorensen-dice", "jaro-winkler", "levenshtein"])
async def test_an_empty_text_is_unlike_any_other_and_two_of_them_are_nothing_to_compare(algorithm: str):
    assert await similarity("x", "", algorithm=algorithm) == 0
    ctx = context("", ground_truth=" ")
    verdict = await run_evaluators([lexical_similarity.use(algorithm=algorithm)], ctx.facts)
    assert verdict.outcome == "error"
    assert "are both empty" in verdict.reason


def test_a_text_is_not_compared_with_itself():
    with pytest.raises(InvalidInput, match="always agrees with itself"):
        lexical_similarity.use(referenceField="response")


async def test_case_blanks_and_composition_do_not_matter_by_default():
    assert await similarity("  Cafe\u0301\n au   LAIT ", "café au lait") == 1
    assert await similarity("STRASSE", "straße") == 1


async def test_case_and_blanks_matter_when_asked():
    assert await similarity("Hello World", "hello world", caseSensitive=True) == pytest.approx(0.7)
    assert await similarity("hello\nworld", "hello world", normalizeWhitespace=False) == pytest.approx(0.8)


async def test_the_threshold_is_inclusive():
    assert (await compare("abcde", "abcfg", threshold=0.5)).outcome == "pass"
    failed = await compare("abcde", "abcfg", threshold=0.51)
    assert failed.outcome == "fail"
    assert failed.reason == "sorensen-dice similarity 0.500, threshold 0.51"
    assert failed.score == 0.5


async def test_a_missing_reference_is_an_error_and_not_a_failure():
    verdict = await compare("abc", None)
    assert verdict.outcome == "error"
    assert verdict.reason == 'Evaluator "lexical-similarity": no text at "groundTruth"'


async def test_a_reference_that_is_not_text_is_an_error():
    assert (await compare("abc", {"text": "abc"})).outcome == "error"
    assert (await compare("abc", {"text": "abc"}, referenceField="groundTruth.text")).outcome == "pass"


@pytest.mark.parametrize("algorithm", ["jaro-winkler", "levenshtein"])
async def test_huge_texts_are_refused_where_time_would_grow_with_their_product(algorithm: str):
    verdict = await compare("a" * 50_001, "a", algorithm=algorithm)
    assert verdict.outcome == "error"
    assert "50,001 characters" in verdict.reason
    assert "use sorensen-dice" in verdict.reason
    assert "limits.similarityCharacters" in verdict.reason


@pytest.mark.parametrize(
    ("scale", "extra", "score", "overall"),
    [
        ("numeric", {}, 1, 1),
        ("likert5", {}, 5, 1),
        ("binary", {}, True, 1),
        ("numeric", {"range": [0, 10]}, 10, 1),
    ],
)
async def test_a_perfect_match_is_perfect_on_every_scale(
    scale: str, extra: dict[str, Any], score: float, overall: float
):
    ctx = context("same", ground_truth="same", criteria=[{"name": "c", "scale": scale, **extra}])
    verdict = await run_evaluators([lexical_similarity.use(criterionName="c")], ctx.facts)
    assert verdict.evaluator_results[0].score == score
    assert verdict.overall_score == overall


async def test_an_undeclared_criterion_gives_no_result():
    ctx = context("a", ground_truth="a", criteria=[{"name": "z"}])
    assert lexical_similarity(ctx.with_config(lexical_similarity.use(criterionName="c").config)) == []


@pytest.mark.parametrize(
    "config",
    [{"algorithm": "soundex"}, {"criterionName": " "}, {"threshold": 1.1}, {"treshold": 0.5}],
)
def test_a_config_that_cannot_work_is_refused_when_loaded(config: dict[str, Any]):
    with pytest.raises(InvalidInput):
        lexical_similarity.use(config)
