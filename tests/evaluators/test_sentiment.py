"""The mood of a text: its words and emoji, negation, and how the number is given."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.aggregate import run_evaluators
from evalstudio.evaluators.builtin.sentiment import EMOJI_SCORES, sentiment, sentiment_score, tokenize
from evalstudio.evaluators.results import Verdict
from evalstudio.testing import context


async def feel(response: str | None, *criteria: dict[str, Any], **config: Any) -> Verdict:
    return await run_evaluators([sentiment.use(config)], context(response, criteria=criteria).facts)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \n\t ", []),
        ("... !?", []),
        ("I LOVE this!", ["i", "love", "this"]),
        ("don't", ["don't"]),
        ("don’t", ["don't"]),
        ("'good'", ["good"]),
        ("‘good’ “bad”", ["good", "bad"]),
        ("cover-up", ["cover-up"]),
        ("good - bad -- ugly — fine", ["good", "bad", "ugly", "fine"]),
        ("good--bad---ugly", ["good", "bad", "ugly"]),
        ("snake_case", ["snake", "case"]),
        ("**great**", ["great"]),
        ("great👍now", ["great", "👍", "now"]),
        ("😀😀", ["😀", "😀"]),
        ("👍🏽", ["👍"]),
        ("❤️", ["❤"]),
        ("👩‍💻 👨‍👩‍👧", ["👩", "👨"]),
        ("🇫🇷", ["🇫"]),
        ("na\u0069\u0308ve", ["naïve"]),
        ("go\u200bod", ["good"]),
        ("हिन्दी है", ["हिन्दी", "है"]),
        ("日本語", ["日", "本", "語"]),
    ],
)
def test_words_and_emoji_are_told_apart(text: str, tokens: list[str]):
    assert tokenize(text) == tokens


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("good", 3),
        ("not good", -3),
        ("not very good", -3),
        ("not at all good", -3),
        ("not in the least good", 3),
        ("not good, good", 0),
        ("don’t worry, be happy", 6),
        ("this isnt bad", 3),
        ("no problem", -3),
        ("not", 0),
        ("good not", 3),
        ("😍", 3),
        ("not 😍", -3),
        ("👍🏿", 3),
        ("❤️", 3),
        ("naïve", -2),
        ("blorp", 0),
    ],
)
def test_scores_add_up_and_a_negator_turns_the_next_scored_word_within_three(text: str, raw: int):
    assert sentiment_score(text).raw == raw


def test_every_emoji_has_one_score_within_the_scale_and_is_one_token():
    assert len(EMOJI_SCORES) > 100
    for emoji, score in EMOJI_SCORES.items():
        assert -5 <= score <= 5
        assert score != 0
        assert tokenize(f"x{emoji}x") == ["x", emoji, "x"]


async def test_the_default_value_is_the_mean_per_word_from_0_to_1():
    result = (await feel("I love this")).evaluator_results[0]
    assert result.value == pytest.approx(0.6)
    assert result.reason == "positive: +3 over 3 words"
    assert result.metadata == {
        "rawScore": 3,
        "comparativeScore": 1,
        "positiveWords": ["love"],
        "negativeWords": [],
        "category": "positive",
        "tokens": 3,
    }


async def test_words_are_listed_last_first_by_the_side_they_counted_on():
    metadata = (await feel("Great, nice, awful and not good")).evaluator_results[0].metadata
    assert metadata["positiveWords"] == ["nice", "great"]
    assert metadata["negativeWords"] == ["good", "awful"]


@pytest.mark.parametrize("text", ["", "   ", "?!", "\u200b"])
async def test_a_text_without_words_is_neutral(text: str):
    result = (await feel(text)).evaluator_results[0]
    assert result.value == 0.5
    assert result.metadata["category"] == "neutral"


@pytest.mark.parametrize(
    ("output_type", "value"), [("comparativeNormalized", 0.35), ("rawScore", -3), ("category", -1.5)]
)
async def test_the_value_is_always_a_number(output_type: str, value: float):
    verdict = await feel("not good", outputType=output_type)
    assert verdict.metrics == {"sentiment": pytest.approx(value)}
    assert verdict.outcome == "unasserted"


async def test_thresholds_are_strict():
    wide: dict[str, Any] = {"outputType": "category", "positiveThreshold": 1, "negativeThreshold": -1}
    criterion = {"name": "c", "scale": "mood"}
    for text, word in [("I love this", "neutral"), ("love this", "positive"), ("awful bad", "negative")]:
        verdict = await feel(text, criterion, criterionName="c", **wide)
        assert verdict.evaluator_results[0].score == word


async def test_the_mean_is_mapped_onto_the_scale_and_the_sum_is_not():
    likert = {"name": "c", "scale": "likert5"}
    assert (await feel("good", likert, criterionName="c")).evaluator_results[0].score == pytest.approx(4.2)
    summed = await feel("good", {"name": "c", "scale": "numeric"}, criterionName="c", outputType="rawScore")
    assert summed.evaluator_results[0].score == 3
    assert summed.overall_score is None
    assert summed.coverage is not None
    assert "range" in summed.coverage.excluded[0]["reason"]


async def test_a_sum_counts_where_its_criterion_has_a_range():
    ranged = {"name": "c", "scale": "numeric", "range": [-6, 6]}
    verdict = await feel("good", ranged, criterionName="c", outputType="rawScore")
    assert verdict.overall_score == 0.75


async def test_an_undeclared_criterion_gives_no_result():
    assert (await feel("good", {"name": "z"}, criterionName="c")).evaluator_results == []


async def test_a_missing_text_is_an_error_of_the_metric_only():
    verdict = await feel("good", sourceTextField="context.nope")
    assert verdict.evaluator_results[0].error == 'no text at "context.nope"'
    assert verdict.metrics == {}


@pytest.mark.parametrize(
    "config",
    [
        {"outputType": "mood"},
        {"positiveThreshold": 0.1, "negativeThreshold": 0.1},
        {"positiveThreshold": -1},
        {"positiveThreshold": float("nan")},
        {"criterionName": " "},
    ],
)
def test_a_config_that_cannot_work_is_refused_when_loaded(config: dict[str, Any]):
    with pytest.raises(InvalidInput):
        sentiment.use(config)


def test_a_text_with_every_character_there_is_is_read_quickly():
    text = "".join(map(chr, range(0x20, 0x110000)))
    start = time.process_time()
    assert sentiment_score(text).tokens > 1_000
    assert time.process_time() - start < 5


def test_the_package_of_the_word_list_is_never_imported():
    code = (
        "import sys; from evalstudio.evaluators.builtin.sentiment import sentiment_score; "
        "assert sentiment_score('good').raw == 3; assert 'afinn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
