"""Keywords in a text: whole words in any script, where keywords come from, and what is refused."""

from __future__ import annotations

import time
from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.aggregate import run_evaluators
from evalstudio.evaluators.builtin.keyword_coverage import keyword_coverage, split_keywords
from evalstudio.evaluators.builtin.text import contains
from evalstudio.evaluators.results import Verdict
from evalstudio.testing import context


async def cover(response: str, keywords: list[str] | None = None, **config: Any) -> Verdict:
    where = {key: config.pop(key) for key in ("ground_truth", "context", "prompt") if key in config}
    settings = config if keywords is None else {"expectedKeywords": keywords, **config}
    return await run_evaluators([keyword_coverage.use(settings)], context(response, **where).facts)


async def coverage(response: str, keywords: list[str] | None = None, **config: Any) -> float | None:
    return (await cover(response, keywords, **config)).evaluator_results[0].value


@pytest.mark.parametrize(
    ("text", "keyword", "found"),
    [
        ("an apple a day", "apple", True),
        ("pineapple", "apple", False),
        ("pineapple, apple", "apple", True),
        ("apple", "apple", True),
        ("apples", "apple", False),
        ("apple_pie", "apple", False),
        ("(apple)", "apple", True),
        ("c# and c++", "c#", True),
        ("c# and c++", "c++", True),
        ("nodexjs", "node.js", False),
        ("I use node.js", "node.js", True),
        (".net core", ".net", True),
        ("asp.net", ".net", True),
        (".network", ".net", False),
        ("100%", "100%", True),
        ("日本 is here", "日本", True),
        ("ты дурак", "дурак", True),
        ("дураки", "дурак", False),
        ("x日本y", "日本", True),
        ("हिन्दी", "हिन", False),
        ("caf\u0065\u0301s", "caf\u0065", False),
        ("a👍b", "👍", True),
        ("[a-z]+", "[a-z]+", True),
    ],
)
def test_whole_words_have_edges_where_the_keyword_has_letters(text: str, keyword: str, found: bool):
    assert contains(text, keyword, whole_word=True) is found


def test_parts_of_words_count_when_whole_words_are_not_asked_for():
    assert contains("pineapple", "apple", whole_word=False)


@pytest.mark.parametrize(
    ("text", "keyword"),
    [("a" * 500_000, "a" * 1_000), ("ab" * 250_000, "ab"), ("$a" * 250_000 + "b", "$ab$")],
)
def test_a_hostile_text_is_read_in_linear_time(text: str, keyword: str):
    start = time.process_time()
    assert not contains(text, keyword, whole_word=True)
    assert time.process_time() - start < 2


async def test_found_and_missing_keywords_are_named_as_they_were_written():
    verdict = await cover("BANANA and apple juice", ["Apple", "banana", "Cherry"])
    result = verdict.evaluator_results[0]
    assert result.value == pytest.approx(2 / 3)
    assert result.metadata == {"foundKeywords": ["Apple", "banana"], "missingKeywords": ["Cherry"]}
    assert result.reason == "2 of 3 keywords found, missing: Cherry"


async def test_a_long_list_of_missing_keywords_is_cut_in_the_reason():
    verdict = await cover("nothing", [f"k{number}" for number in range(100)])
    assert verdict.reason.endswith("k9 and 90 more")
    assert len(verdict.evaluator_results[0].metadata["missingKeywords"]) == 100


async def test_duplicates_count_once_after_folding():
    assert await coverage("apple", ["apple", "Apple", " apple ", "pear"]) == 0.5
    assert await coverage("apple", ["apple", "Apple"], caseSensitive=True) == 0.5


async def test_case_matters_when_asked():
    assert await coverage("banana", ["Banana"], caseSensitive=True) == 0
    assert await coverage("STRASSE", ["straße"]) == 1


async def test_composed_and_decomposed_letters_are_the_same():
    assert await coverage("un cafe\u0301", ["café"]) == 1


async def test_blanks_are_collapsed_in_text_and_keywords_unless_told_otherwise():
    assert await coverage("machine\n  learning", ["machine  learning"]) == 1
    assert await coverage("machine\n  learning", ["machine learning"], normalizeWhitespace=False) == 0
    assert (
        await coverage("machine\n  learning", ["machine learning"], normalizeWhitespaceForSource=False) == 0
    )


async def test_an_empty_text_has_no_keyword():
    assert await coverage("", ["apple"]) == 0


async def test_the_threshold_is_inclusive():
    assert (await cover("a", ["a", "b"])).outcome == "pass"
    assert (await cover("a", ["a", "b"], threshold=0.6)).outcome == "fail"


@pytest.mark.parametrize(
    ("text", "keywords"),
    [
        ("machine learning, deep nets", ["machine learning", "deep nets"]),
        ("one two;three", ["one two", "three"]),
        ("one two\nthree", ["one two", "three"]),
        ("one  two three", ["one", "two", "three"]),
        ("苹果、香蕉", ["苹果", "香蕉"]),
    ],
)
async def test_keywords_in_a_text_are_phrases_or_words(text: str, keywords: list[str]):
    assert [keyword.strip() for keyword in split_keywords(text)] == keywords
    assert await coverage(keywords[0], keywordsSourceField="groundTruth", ground_truth=text) == pytest.approx(
        1 / len(keywords)
    )


async def test_keywords_in_a_list_are_its_non_blank_texts():
    given = ["a", " ", "b"]
    assert await coverage("a b", keywordsSourceField="context.k", context={"k": given}) == 1


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (["a", 5], "context.k[1]"),
        ([None, "a"], "context.k[0]"),
        (["a", ["b"]], "context.k[1]"),
        ([True], "context.k[0]"),
        (5, "context.k"),
        ({"a": 1}, "context.k"),
    ],
)
async def test_a_keyword_that_is_not_text_is_an_error_that_names_its_place(given: Any, place: str):
    verdict = await cover("a b 5", keywordsSourceField="context.k", context={"k": given})
    assert verdict.outcome == "error"
    assert f'the keyword at "{place}" is a ' in verdict.reason


@pytest.mark.parametrize(
    "config",
    [
        {"expectedKeywords": []},
        {"expectedKeywords": ["a", " "]},
        {"expectedKeywords": ["\u200b"]},
        {"expectedKeywords": ["a"], "threshold": 0},
        {"keywordsSourceField": "response"},
        {"keywordsSourceField": "context.k", "sourceField": "context.k"},
    ],
)
def test_what_could_only_pass_is_refused(config: dict[str, Any]):
    with pytest.raises(InvalidInput):
        keyword_coverage.use(config)


@pytest.mark.parametrize("nothing", [[], ["", " "], "", " , ;\n", None])
async def test_nothing_usable_where_the_keywords_should_be_is_an_error(nothing: Any):
    verdict = await cover("a", keywordsSourceField="context.k", context={"k": nothing})
    assert verdict.outcome == "error"
    assert verdict.reason == 'Evaluator "keyword-coverage": no keywords at "context.k"'


async def test_the_text_is_found_by_either_name_of_its_field():
    for name in ("sourceField", "sourceTextField", "source_field"):
        assert await coverage("b", ["a"], prompt="a", **{name: "prompt"}) == 1
    assert (await cover("a", ["a"], sourceField="context.nope")).outcome == "error"


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"expectedKeywords": []},
        {"expectedKeywords": ["a", "  "]},
        {"expectedKeywords": ["a"], "keywordsSourceField": "groundTruth"},
        {"keywordsSourceField": " "},
        {"expectedKeywords": ["a"], "criterionName": ""},
        {"expectedKeywords": "a"},
        {"expectedKeywords": ["a"], "threshold": -1},
    ],
)
def test_a_config_that_cannot_work_is_refused_when_loaded(config: dict[str, Any]):
    with pytest.raises(InvalidInput):
        keyword_coverage.use(config)


def test_the_schema_shows_one_name_per_field_and_describes_each():
    fields = keyword_coverage.config.schema["properties"]
    assert {"sourceField", "normalizeWhitespace", "expectedKeywords"} <= fields.keys()
    assert not {"sourceTextField", "normalizeWhitespaceForSource", "source_field"} & fields.keys()
    assert all(field["description"] for field in fields.values())


async def test_coverage_is_mapped_onto_the_scale_of_its_criterion():
    ctx = context("a", criteria=[{"name": "c", "scale": "likert5"}])
    entry = keyword_coverage.use(criterionName="c", expectedKeywords=["a", "b"])
    verdict = await run_evaluators([entry], ctx.facts)
    assert verdict.evaluator_results[0].score == 3
    assert verdict.overall_score == 0.5
