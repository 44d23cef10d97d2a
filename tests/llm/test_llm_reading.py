"""What counts as an answer, and what does not."""

from __future__ import annotations

import json
from contextlib import suppress
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.llm.opened import MET, UNMET, WAS_MET, Verdict

from evalstudio.llm.answers import InvalidAnswer, find_objects, read_answer

GOOD = json.dumps(MET)
OTHER = json.dumps(UNMET)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(GOOD, id="plain"),
        pytest.param(f"\n\n  {GOOD}\n", id="blanks around"),
        pytest.param(f"\ufeff{GOOD}", id="byte order mark"),
        pytest.param(f"```json\n{GOOD}\n```", id="fenced"),
        pytest.param(f"```\n{GOOD}\n```", id="fenced without a language"),
        pytest.param(f"~~~JSON\r\n{GOOD}\r\n~~~", id="other fence, other line ends"),
        pytest.param(f"Here is my verdict:\n{GOOD}\nI hope it helps!", id="text around"),
        pytest.param(f"In {{braces}} I trust: {GOOD}", id="braces in prose"),
        pytest.param(f"f(x) {{ return x; }} {GOOD}", id="code before"),
        pytest.param(f"an open {{ brace, then {GOOD}", id="open brace in prose"),
        pytest.param(f"{GOOD}\n{GOOD}", id="the same twice"),
        pytest.param(f'{GOOD} {{"met": "perhaps"}}', id="another object that does not fit"),
        pytest.param(f"[{GOOD}]", id="in a list of one"),
        pytest.param(json.dumps({**MET, "extra": [1, {"a": None}]}), id="more than asked"),
        pytest.param(GOOD.replace("true", '"yes"'), id="a word for true"),
        pytest.param(GOOD.replace("0.9", '"0.9"'), id="a number as text"),
        pytest.param(json.dumps(MET, indent=4), id="indented"),
        pytest.param(
            '{"met": true, "met": true, "reasoning": "It did.", "confidence": 0.9}', id="key repeated"
        ),
    ],
)
def test_one_fitting_object_is_found_in_its_wrapping(reply: str) -> None:
    assert read_answer(reply, Verdict) == WAS_MET


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
        pytest.param("It was met, I am sure.", "no JSON object", id="prose"),
        pytest.param("true", "no JSON object", id="a bare word"),
        pytest.param("null", "no JSON object", id="null"),
        pytest.param("[]", "no JSON object", id="an empty list"),
        pytest.param("{}", "reasoning: Field required", id="an empty object"),
        pytest.param("```json\n```", "no JSON object", id="an empty fence"),
        pytest.param(GOOD[:-1], "cut off", id="cut off at the brace"),
        pytest.param(GOOD[: len(GOOD) // 2], "cut off", id="cut off in the middle"),
        pytest.param('{"reasoning": "It d', "cut off", id="cut off in a string"),
        pytest.param(f'{{"draft": {GOOD}, "fin', "cut off", id="whole object nested in one cut off"),
        pytest.param(
            f'{{"said "no"": 1, "inner": {GOOD}}}', "broken", id="whole object nested in a broken one"
        ),
        pytest.param(f'{{"answer": {GOOD}}}', "reasoning: Field required", id="wrapped in another object"),
        pytest.param(f"{GOOD}\n{OTHER}", "2 different answers", id="two that differ"),
        pytest.param(f"[{GOOD}, {OTHER}]", "2 different answers", id="a list of two that differ"),
        pytest.param(f"The agent said {GOOD}. I say {OTHER}", "2 different answers", id="a quoted one"),
        pytest.param('{"met": true, "met": false, "reasoning": ""}', "given twice", id="one key, two values"),
        pytest.param('{"reasoning": "x"}', "met: Field required", id="a field missing"),
        pytest.param('{"reasoning": "x", "met": "maybe"}', "met: Input should be", id="not a bool"),
        pytest.param('{"reasoning": "x", "met": null}', "met: Input should be", id="null for a bool"),
        pytest.param('{"reasoning": 7, "met": true}', "reasoning: Input should be", id="a number for text"),
        pytest.param('{"reasoning": ["x"], "met": true}', "reasoning", id="a list for text"),
        pytest.param('{"reasoning": "", "met": true, "confidence": 7}', "confidence", id="out of range"),
        pytest.param('{"reasoning": "", "met": true, "confidence": NaN}', "NaN", id="not a number"),
        pytest.param('{"reasoning": "", "met": true, "confidence": 1e999}', "too large", id="infinite"),
        pytest.param("{'reasoning': 'x', 'met': True}", "no JSON object", id="written as Python"),
        pytest.param('{"reasoning": "x", "met": true,}', "broken", id="a comma too many"),
        pytest.param('{"reasoning": "x" "met": true}', "broken", id="a comma missing"),
        pytest.param('{"reasoning": "say "no"", "met": true}', "broken", id="quotes not escaped"),
        pytest.param(json.dumps(GOOD), "no JSON object", id="JSON inside a JSON string"),
        pytest.param('{"a":' * 100_000, "nested too deeply", id="nested without end"),
        pytest.param("{}" * 1000, "more than 50", id="a thousand objects"),
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
    assert perf_counter() - start < 2


@given(st.text(max_size=300))
def test_any_text_gives_objects_or_invalid_answer(text: str) -> None:
    with suppress(InvalidAnswer):
        assert all(isinstance(found, dict) for found in find_objects(text))


@given(
    st.builds(Verdict, reasoning=st.text(), met=st.booleans(), confidence=st.floats(0, 1)),
    st.sampled_from(["{}", "Well:\n```json\n{}\n```", "{}\nThat is all."]),
)
def test_every_verdict_survives_the_way_there_and_back(verdict: Verdict, wrapping: str) -> None:
    assert read_answer(wrapping.replace("{}", verdict.model_dump_json()), Verdict) == verdict
