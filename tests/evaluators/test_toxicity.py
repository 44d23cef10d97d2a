"""Terms that must not occur, however they are written."""

from __future__ import annotations

from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.aggregate import run_evaluators
from evalstudio.evaluators.builtin.toxicity import toxicity
from evalstudio.evaluators.results import Verdict
from evalstudio.testing import context


async def check(response: str, terms: list[str], **config: Any) -> Verdict:
    return await run_evaluators([toxicity.use(toxicTerms=terms, **config)], context(response).facts)


async def found(response: str, *terms: str, **config: Any) -> list[str]:
    return (await check(response, list(terms), **config)).evaluator_results[0].metadata["foundToxicTerms"]


async def test_a_clean_text_passes():
    verdict = await check("A clean response.", ["darn", "heck"])
    assert verdict.outcome == "pass"
    assert verdict.evaluator_results[0].value == 1
    assert verdict.evaluator_results[0].metadata == {"foundToxicTerms": []}


async def test_terms_are_named_in_the_order_they_were_configured():
    verdict = await check("HECK no, darn", ["darn", "heck"])
    assert verdict.outcome == "fail"
    assert verdict.reason == "toxic terms found: darn, heck"


@pytest.mark.parametrize(
    "disguised",
    [
        "you id\u200biot",
        "you id\u00adiot",
        "you i\u2060d\ufeffi\u200dot",
        "you id\ufe0fiot",
        "you id\u034fiot",
        "you id\U000e0069iot",
        "you ｉｄｉｏｔ",
        "you 𝓲𝓭𝓲𝓸𝓽",
        "IDIOT",
        "idiot\u202e!",
    ],
)
async def test_hidden_and_styled_characters_do_not_hide_a_term(disguised: str):
    assert await found(disguised, "idiot") == ["idiot"]


async def test_a_term_may_itself_be_written_with_hidden_or_styled_characters():
    assert await found("idiot", "ｉd\u200biot") == ["ｉd\u200biot"]


async def test_a_mark_after_a_hidden_character_still_joins_its_letter():
    assert await found("cre\u200b\u0301tin", "crétin") == ["crétin"]


async def test_whole_words_are_asked_for_by_default():
    assert await found("Classic assembly", "ass") == []
    assert await found("Classic assembly", "ass", matchWholeWord=False) == ["ass"]
    assert await found("you a$$", "a$$") == ["a$$"]
    assert await found("ты дурак", "дурак") == ["дурак"]


async def test_case_matters_when_asked():
    assert await found("HECK, darn", "darn", "heck", caseSensitive=True) == ["darn"]


async def test_a_phrase_is_found_across_line_breaks():
    assert await found("oh shut\n  up now", "shut up") == ["shut up"]


async def test_the_same_term_twice_is_named_once():
    assert await found("heck", "heck", "HECK") == ["heck"]


async def test_an_empty_text_is_clean():
    assert await found("", "heck") == []


@pytest.mark.parametrize("scale", ["binary", "likert5", "numeric"])
async def test_the_score_is_a_plain_yes_or_no_on_every_scale(scale: str):
    for response, clean in [("fine", True), ("bad", False)]:
        ctx = context(response, criteria=[{"name": "c", "scale": scale}])
        verdict = await run_evaluators([toxicity.use(toxicTerms=["bad"], criterionName="c")], ctx.facts)
        assert verdict.evaluator_results[0].score is clean
        assert verdict.overall_score == float(clean)


async def test_an_undeclared_criterion_gives_no_result():
    assert (await check("x", ["bad"], criterionName="c")).evaluator_results == []


async def test_a_text_that_is_not_there_is_an_error():
    assert (await check("x", ["bad"], sourceField="context.nope")).outcome == "error"


def test_it_must_hold_on_every_turn():
    assert toxicity.use(toxicTerms=["bad"]).gate == "always"


@pytest.mark.parametrize("terms", [[], [""], ["bad", " "], ["\u200b"], "bad", None])
def test_terms_that_cannot_work_are_refused_when_loaded(terms: Any):
    with pytest.raises(InvalidInput):
        toxicity.use(toxicTerms=terms)
