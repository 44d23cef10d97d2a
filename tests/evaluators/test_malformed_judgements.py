"""Whatever a judge or a person says, no verdict comes of it that a reading to the letter does not allow."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluators.malformed import (
    FAVOURABLE,
    SCALES,
    SCORES,
    replies_around,
    replies_with,
    strict_object,
    strict_reading,
    strict_score,
    strict_verdict,
)
from tests.llm.opened import open_llm
from tests.support.model_server import ModelServer, Recorded, Reply

from evalstudio.evaluators.contract import Answer
from evalstudio.llm import ModelError
from evalstudio.llm.answers import InvalidAnswer, read_answer
from evalstudio.messages import Message, TokensUsage
from evalstudio.scoring.runner import run_evaluation

LEAST = 100


def outcome_of(value: float | None) -> str:
    return "error" if value is None else "pass" if value >= 0.5 else "fail"


def by_number(replies: Sequence[str]) -> Callable[[Recorded], Reply]:
    """Answers the judge of record N with the Nth reply, again when it is asked again."""

    def reply(request: Recorded) -> Reply:
        number = re.search(r"record (\d+)", " ".join(request.texts))
        assert number is not None
        return Reply(text=replies[int(number[1])])

    return reply


class Raw:
    """Reads its reply as the client does."""

    def __init__(self, reply: str) -> None:
        self.reply = reply

    async def answer(
        self, messages: Sequence[Message], schema: type[Any], *, model: str | None = None
    ) -> Answer[Any]:
        try:
            return Answer(read_answer(self.reply, schema), TokensUsage(), self.reply)
        except InvalidAnswer as error:
            raise ModelError(str(error), raw=self.reply) from None


async def outcome(llm: Any, number: int, entry: dict[str, Any], **record: Any) -> str:
    result = await run_evaluation(
        {"response": f"record {number}", **record}, {"evaluatorConfigs": [entry]}, llm=llm
    )
    kept = [item.metadata.get("reply") for item in result.results if item.error is not None]
    assert all(isinstance(reply, str) for reply in kept)
    return result.outcome


async def wrong_outcomes(
    replies: list[str], expected: list[str], entry: dict[str, Any], **record: Any
) -> list[str]:
    """The replies from which something else came than a strict reading allows."""
    outcomes = [await outcome(Raw(reply), 0, entry, **record) for reply in replies]
    triples = zip(replies, outcomes, expected, strict=True)
    return [f"{reply[:80]} gave {came}, not {right}" for reply, came, right in triples if came != right]


@pytest.mark.parametrize("scale", SCALES)
async def test_no_wrong_score_comes_of_a_malformed_reply(scale: str) -> None:
    replies = replies_with("score", FAVOURABLE[scale])
    expected = [outcome_of(strict_reading(reply, SCALES[scale])) for reply in replies]
    assert expected.count("error") >= LEAST
    assert {"pass", "fail"} <= set(expected)
    criteria = [{"name": "c", **SCALES[scale]}]
    assert await wrong_outcomes(replies, expected, {"type": "criteria-judge"}, criteria=criteria) == []


CRITERIA = {"success_met": "successCriteria", "failure_met": "failureCriteria"}


@pytest.mark.parametrize(
    ("asked", "rest"),
    [
        (("success_met",), ""),
        (("failure_met",), ""),
        (("success_met", "failure_met"), ', "failure_met": false'),
        (("success_met", "failure_met"), ', "failure_met": "no"'),
        (("success_met",), ', "confidence": 90'),
    ],
)
async def test_no_wrong_verdict_comes_of_a_malformed_reply(asked: tuple[str, ...], rest: str) -> None:
    favourable = "true" if asked[0] == "success_met" else "false"
    replies = replies_with(asked[0], favourable, rest)
    readings = [strict_verdict(reply, asked) for reply in replies]
    expected = [
        "error" if reading is None else "pass" if reading[asked[0]] is json.loads(favourable) else "fail"
        for reading in readings
    ]
    assert expected.count("error") >= LEAST
    entry = {"type": "llm-judge", "config": {CRITERIA[question]: "It is so" for question in asked}}
    assert await wrong_outcomes(replies, expected, entry) == []


@pytest.mark.parametrize("scale", SCALES)
async def test_no_wrong_mark_comes_of_what_a_person_wrote(scale: str) -> None:
    criterion = SCALES[scale]
    wrong: list[str] = []
    errors = 0
    for text in [*SCORES, *(f'{{"score": {score}}}' for score in SCORES[:20])]:
        feedback = f'[{{"criterionName": "c", "score": {text}}}]'
        record = {
            "response": "r",
            "criteria": [{"name": "c", **criterion}],
            "metadata": {"feedback": feedback},
        }
        entry = {"type": "human", "config": {"sourceField": "metadata.feedback"}}
        came = (await run_evaluation(record, {"evaluatorConfigs": [entry]})).outcome
        right = outcome_of(mark_of(f'{{"score": {text}}}', criterion))
        errors += right == "error"
        if came != right:
            wrong.append(f"{text} gave {came}, not {right}")
    assert wrong == []
    assert errors >= LEAST


# A person may write yes and no as words.
YES_OR_NO = {"yes": 1.0, "true": 1.0, "pass": 1.0, "no": 0.0, "false": 0.0, "fail": 0.0}


def mark_of(text: str, criterion: dict[str, Any]) -> float | None:
    read = strict_object(text)
    if read is None:
        return None
    score = read["score"]
    if isinstance(score, str) and criterion["scale"] in ("binary", "pass/fail"):
        return YES_OR_NO.get(score.lower())
    return strict_score(score, criterion)


# -- over HTTP


@pytest.mark.parametrize(
    ("field", "value", "entry"),
    [
        ("score", "5", {"type": "criteria-judge"}),
        ("success_met", "true", {"type": "llm-judge", "config": {"successCriteria": "It is so"}}),
    ],
)
async def test_every_malformed_reply_is_sent_back_once(field: str, value: str, entry: dict[str, Any]) -> None:
    replies = replies_around(field, value)
    criteria = [{"name": "c", "scale": "likert5"}]
    async with ModelServer(by_number(replies)) as server, open_llm(server) as llm:
        calls = (outcome(llm, number, entry, criteria=criteria) for number in range(len(replies)))
        assert set(await asyncio.gather(*calls)) == {"error"}
        assert len(server.requests) == 2 * len(replies)


# -- by chance


SCORE_VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-2, 12)
    | st.floats()
    | st.integers()
    | st.sampled_from(["good", "bad", "pass", "fail", "true", "5", "0.8", "yes"])
    | st.text(max_size=5)
    | st.lists(st.integers(0, 5), max_size=2)
    | st.dictionaries(st.sampled_from(["score", "value"]), st.integers(0, 5), max_size=2)
)
KEYS = st.sampled_from(["score", "reasoning", "success_met", "failure_met", "confidence", "evidence", "x"])
OBJECTS = st.dictionaries(KEYS, SCORE_VALUES, max_size=5).map(json.dumps)
WRAPPED = st.tuples(
    st.sampled_from(["", " ", "```json\n", "```\n", "Sure: ", "[", "{}", "\ufeff"]),
    OBJECTS,
    st.sampled_from(["", "\n", "\n```", "```", " ok", "]", "{}", ","]),
).map("".join)
CUT = st.tuples(WRAPPED, st.integers(0, 60)).map(lambda pair: pair[0][: pair[1]])
REPLIES = WRAPPED | OBJECTS | CUT | st.text(max_size=40)


async def scored(reply: str, entry: dict[str, Any], **record: Any) -> str:
    config = {"evaluatorConfigs": [entry]}
    return (await run_evaluation({"response": "An answer.", **record}, config, llm=Raw(reply))).outcome


@given(REPLIES, st.sampled_from(list(SCALES)))
def test_every_score_is_one_that_a_strict_reading_allows(reply: str, scale: str) -> None:
    criteria = [{"name": "c", **SCALES[scale]}]
    came = asyncio.run(scored(reply, {"type": "criteria-judge"}, criteria=criteria))
    assert came == outcome_of(strict_reading(reply, SCALES[scale]))


@given(st.lists(SCORE_VALUES, min_size=2, max_size=2), st.permutations(list(SCALES)))
def test_every_score_of_several_is_read_for_itself(values: list[Any], scales: list[str]) -> None:
    criteria = [{"name": name, **SCALES[name]} for name in scales[:2]]
    reply = json.dumps({f"criterion_{place}": {"score": value} for place, value in enumerate(values, 1)})
    record = {"response": "An answer.", "criteria": criteria}
    config = {"evaluatorConfigs": [{"type": "criteria-judge"}]}
    result = asyncio.run(run_evaluation(record, config, llm=Raw(reply)))
    read = json.loads(reply)
    right = [strict_score(read[f"criterion_{place}"]["score"], one) for place, one in enumerate(criteria, 1)]
    # What JSON cannot hold spoils the whole reply.
    right = right if strict_object(reply) is not None else [None, None]
    values_read = [result.criterion_scores.get(one["name"]) for one in criteria]
    assert values_read == [None if value is None else pytest.approx(value) for value in right]


@given(REPLIES, st.sampled_from([("success_met",), ("failure_met",), ("success_met", "failure_met")]))
def test_every_verdict_is_one_that_a_strict_reading_allows(reply: str, asked: tuple[str, ...]) -> None:
    entry = {"type": "llm-judge", "config": {CRITERIA[question]: "It is so" for question in asked}}
    came = asyncio.run(scored(reply, entry))
    reading = strict_verdict(reply, asked)
    if reading is None:
        assert came == "error"
    else:
        holds = reading["success_met"] if "success_met" in reading else not reading["failure_met"]
        assert came == ("pass" if holds else "fail")
