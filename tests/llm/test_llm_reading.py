"""What counts as an answer, and what does not."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import date
from enum import Enum
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.llm.opened import MET, UNMET, WAS_MET, Verdict

from evalstudio.llm.answers import InvalidAnswer, read_answer


class Anything(BaseModel):
    """Fits every object."""


GOOD = json.dumps(MET)
OTHER = json.dumps(UNMET)
ALONE = "not one JSON object and nothing else"


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(GOOD, id="plain"),
        pytest.param(f"\n\n  {GOOD}\n", id="blanks around"),
        pytest.param(f"\ufeff{GOOD}", id="byte order mark"),
        pytest.param(f"```json\n{GOOD}\n```", id="fenced"),
        pytest.param(f"```\n{GOOD}\n```", id="fenced without a language"),
        pytest.param(f"~~~JSON\r\n{GOOD}\r\n~~~", id="other fence, other line ends"),
        pytest.param(json.dumps(MET, indent=4), id="indented"),
        pytest.param(f"```json\n{json.dumps(MET, indent=4)}\n```\n", id="indented in a fence"),
        pytest.param(
            GOOD.replace("It did.", "```\\nIt did.\\n```").join(("```\n", "\n```")), id="a fence in it"
        ),
    ],
)
def test_one_fitting_object_is_read_alone_or_alone_in_a_fence(reply: str) -> None:
    read = read_answer(reply, Verdict)
    assert (read.met, read.confidence) == (WAS_MET.met, WAS_MET.confidence)


def test_raw_line_breaks_and_unicode_inside_strings_are_kept() -> None:
    read = read_answer('{"reasoning": "first\nsecond\t“ż” 🎉 \\u00e9", "met": true}', Verdict)
    assert read.reasoning == "first\nsecond\t“ż” 🎉 é"


def test_half_a_surrogate_pair_is_made_harmless() -> None:
    read = read_answer('{"reasoning": "a \\uD83D b \\ud83d\\ude00", "met": true}', Verdict)
    assert read.reasoning == "a ? b 😀"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param(" \n\t", "empty", id="blank"),
        pytest.param("It was met, I am sure.", ALONE, id="prose"),
        pytest.param("true", "not an object", id="a bare word"),
        pytest.param("null", "not an object", id="null"),
        pytest.param("[]", "not an object", id="an empty list"),
        pytest.param(f"[{GOOD}]", "not an object", id="in a list of one"),
        pytest.param("{}", "reasoning: Field required", id="an empty object"),
        pytest.param("```json\n```", ALONE, id="an empty fence"),
        pytest.param(f"Here is my verdict:\n{GOOD}", ALONE, id="text before"),
        pytest.param(f"{GOOD}\nI hope it helps!", ALONE, id="text after"),
        pytest.param(f"My verdict:\n```json\n{GOOD}\n```", ALONE, id="text before the fence"),
        pytest.param(f"```json\n{GOOD}\n```\nThat is all.", ALONE, id="text after the fence"),
        pytest.param(f"```json\nSure: {GOOD}\n```", ALONE, id="text in the fence"),
        pytest.param(f"```json\n{GOOD}\n{OTHER}\n```", ALONE, id="two in a fence"),
        pytest.param(f"```\n{GOOD}\n```\n```\n{OTHER}\n```", ALONE, id="two fences"),
        pytest.param(f"```json\n{GOOD}", ALONE, id="a fence that does not end"),
        pytest.param(f"In {{braces}} I trust: {GOOD}", ALONE, id="braces in prose"),
        pytest.param(f"{GOOD}\n{GOOD}", ALONE, id="the same twice"),
        pytest.param(f'{GOOD} {{"met": "perhaps"}}', ALONE, id="another object that does not fit"),
        pytest.param(GOOD.replace("true", '"yes"'), "met: Input should be", id="a word for true"),
        pytest.param(GOOD.replace("true", "1"), "met: Input should be", id="a number for true"),
        pytest.param(GOOD.replace("0.9", '"0.9"'), "confidence: Input should be", id="a number as text"),
        pytest.param(GOOD.replace("0.9", "true"), "confidence: Input should be", id="true as a number"),
        pytest.param('{"met": true, "met": true, "reasoning": ""}', "there twice", id="a key repeated"),
        pytest.param(GOOD[:-1], ALONE, id="cut off at the brace"),
        pytest.param(GOOD[: len(GOOD) // 2], ALONE, id="cut off in the middle"),
        pytest.param('{"reasoning": "It d', ALONE, id="cut off in a string"),
        pytest.param(f'{{"draft": {GOOD}, "fin', ALONE, id="whole object nested in one cut off"),
        pytest.param(f'{{"said "no"": 1, "inner": {GOOD}}}', ALONE, id="whole object nested in a broken one"),
        pytest.param(f'{{"answer": {GOOD}}}', "reasoning: Field required", id="wrapped in another object"),
        pytest.param(f"{GOOD}\n{OTHER}", ALONE, id="two that differ"),
        pytest.param(f"[{GOOD}, {OTHER}]", "not an object", id="a list of two that differ"),
        pytest.param(f"The agent said {GOOD}. I say {OTHER}", ALONE, id="a quoted one"),
        pytest.param('{"met": true, "met": false, "reasoning": ""}', "there twice", id="one key, two values"),
        pytest.param('{"reasoning": "x"}', "met: Field required", id="a field missing"),
        pytest.param('{"reasoning": "x", "met": "maybe"}', "met: Input should be", id="not a bool"),
        pytest.param('{"reasoning": "x", "met": null}', "met: Input should be", id="null for a bool"),
        pytest.param('{"reasoning": 7, "met": true}', "reasoning: Input should be", id="a number for text"),
        pytest.param('{"reasoning": ["x"], "met": true}', "reasoning", id="a list for text"),
        pytest.param('{"reasoning": "", "met": true, "confidence": 7}', "confidence", id="out of range"),
        pytest.param('{"reasoning": "", "met": true, "confidence": NaN}', "NaN", id="not a number"),
        pytest.param('{"reasoning": "", "met": true, "confidence": 1e999}', "too large", id="infinite"),
        pytest.param("{'reasoning': 'x', 'met': True}", ALONE, id="written as Python"),
        pytest.param('{"reasoning": "x", "met": true,}', ALONE, id="a comma too many"),
        pytest.param('{"reasoning": "x" "met": true}', ALONE, id="a comma missing"),
        pytest.param('{"reasoning": "say "no"", "met": true}', ALONE, id="quotes not escaped"),
        pytest.param(json.dumps(GOOD), "not an object", id="JSON inside a JSON string"),
        pytest.param('{"a":' * 100_000, "nested too deeply", id="nested without end"),
        pytest.param("{}" * 1000, ALONE, id="a thousand objects"),
        pytest.param(f'{{"met": {"9" * 5000}, "reasoning": ""}}', "cannot be used", id="an endless integer"),
    ],
)
def test_anything_else_is_invalid_and_says_why(reply: str, why: str) -> None:
    with pytest.raises(InvalidAnswer, match=why):
        read_answer(reply, Verdict)


def test_problems_are_named_without_repeating_what_was_sent() -> None:
    with pytest.raises(InvalidAnswer) as caught:
        read_answer('{"reasoning": 1, "met": "SECRET", "confidence": 9}', Verdict)
    assert "SECRET" not in str(caught.value)
    assert str(caught.value).count(";") == 2


@pytest.mark.parametrize(
    "reply", ["{" * 1_000_000, "{ " * 500_000, '{"' * 300_000, "{\n" * 500_000, "x" * 5_000_000]
)
def test_a_huge_hostile_reply_takes_no_time(reply: str) -> None:
    start = perf_counter()
    with pytest.raises(InvalidAnswer):
        read_answer(reply, Verdict)
    assert perf_counter() - start < 20


@given(st.text(max_size=300) | st.text('{}[]":, \n`truefals0123.eE-', max_size=60))
def test_any_text_is_read_as_json_would_be_or_not_at_all(text: str) -> None:
    with suppress(InvalidAnswer):
        read_answer(text, Anything)
        assert isinstance(
            json.loads(text.strip().removeprefix("\ufeff").strip("`~").strip(), strict=False), dict
        )


@given(
    st.builds(Verdict, reasoning=st.text(), met=st.booleans(), confidence=st.floats(0, 1)),
    st.sampled_from(["{}", "```json\n{}\n```", "\n{}\n"]),
)
def test_every_verdict_survives_the_way_there_and_back(verdict: Verdict, wrapping: str) -> None:
    assert read_answer(wrapping.replace("{}", verdict.model_dump_json()), Verdict) == verdict


class Choice(Enum):
    GOOD = "good"


class Typed(BaseModel):
    choice: Choice
    day: date
    pair: tuple[int, float]


def test_what_json_cannot_hold_is_read_from_how_it_is_written() -> None:
    read = read_answer('{"choice": "good", "day": "2026-05-01", "pair": [1, 2]}', Typed)
    assert read == Typed(choice=Choice.GOOD, day=date(2026, 5, 1), pair=(1, 2.0))
