"""Judges that do not answer what they were asked, or are asked nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from evalstudio.evaluators.contract import Answer
from evalstudio.llm import ModelError
from evalstudio.llm.answers import InvalidAnswer, read_answer
from evalstudio.messages import Message, TokensUsage

from .table import Came, live, recorded, row

TRUE = '{"reasoning": "It is so.", "success_met": true}'
JUDGE = {"type": "llm-judge", "config": {"successCriteria": "The table is booked"}}
WARM = '{"reasoning": "Warm and complete.", "score": 5}'


class Judge:
    """A model that gives these replies, the last one for ever; each is read as a provider's would be."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)

    async def answer(
        self, messages: Sequence[Message], schema: Any, *, model: str | None = None, role: str = ""
    ) -> Answer[Any]:
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        try:
            return Answer(read_answer(reply, schema), TokensUsage(), reply)
        except InvalidAnswer as error:
            raise ModelError(str(error), raw=reply) from None


async def scored(score: str, scale: str, response: str = "An answer.", **criterion: Any) -> Came:
    """One criterion on a scale, for which the judge writes this score."""
    reply = f'{{"reasoning": "r", "score": {score}}}'
    criteria = [{"name": "c", "scale": scale, **criterion}]
    return await recorded(
        {"response": response}, {"type": "criteria-judge"}, criteria=criteria, llm=Judge(reply)
    )


async def judged(*replies: str, agent: str = "It is booked.", **config: Any) -> Came:
    """A conversation of one turn, judged by these replies."""
    use = {"type": "llm-judge", "config": JUDGE["config"] | config}
    use["config"] = {key: item for key, item in use["config"].items() if item is not None}
    return await live(lambda messages: agent, use, llm=Judge(*replies))


# -- scores


@row("judge", "A judge answers 8 on a scale from 0 to 1", expect="error", says="8 is not on the scale")
async def score_of_ten_on_a_share() -> Came:
    return await scored("8", "numeric")


@row("judge", "A judge answers 80 on a scale from 0 to 1", expect="error", says="answer a number from 0 to 1")
async def score_of_a_hundred_on_a_share() -> Came:
    return await scored("80", "numeric")


@row("judge", 'A judge answers "0,8" with a comma', expect="error", says="is not on the scale")
async def score_with_a_comma() -> Came:
    return await scored('"0,8"', "numeric")


@row("judge", 'A judge answers "80%" where a number was asked for', expect="error", says="80%")
async def score_in_percent() -> Came:
    return await scored('"80%"', "numeric")


@row("judge", 'A judge answers "5 is best, I give 2"', expect="error", says="5 is best, I give 2")
async def score_after_the_scale() -> Came:
    return await scored('"5 is best, I give 2"', "likert5")


@row(
    "judge",
    "A judge answers true where a number was asked for",
    expect="error",
    says="true is not on the scale",
)
async def true_for_a_number() -> Came:
    return await scored("true", "likert5")


@row("judge", 'A judge answers the number "5" as text', expect="error", says='"5" is not on the scale')
async def number_as_text() -> Came:
    return await scored('"5"', "likert5")


@row("judge", 'A judge answers "4/5" on a scale from 1 to 5', expect="error", says="4/5")
async def score_as_a_fraction() -> Came:
    return await scored('"4/5"', "likert5")


@row("judge", "A judge answers 4.5 where a whole number was asked for", expect="error", says="4.5")
async def half_a_point() -> Came:
    return await scored("4.5", "likert5")


@row("judge", "A judge answers 11 on a scale from 0 to 10", expect="error", says="from 0 to 10")
async def score_above_the_range() -> Came:
    return await scored("11", "numeric", range=[0, 10])


@row("judge", "A judge answers a number larger than any", expect="error", says="too large a number")
async def score_without_end() -> Came:
    return await scored("1e400", "numeric", range=[0, 10])


@row("judge", "A judge answers NaN", expect="error", says="NaN is not a number in JSON")
async def score_that_is_no_number() -> Came:
    return await scored("NaN", "numeric")


@row("judge", "A judge answers 1 where true or false was asked for", expect="error", says="true or false")
async def one_for_true() -> Came:
    return await scored("1", "binary")


@row("judge", 'A judge answers "pass" where true or false was asked for', expect="error", says='"pass"')
async def word_for_true() -> Came:
    return await scored('"pass"', "pass/fail")


@row("judge", 'A judge answers "not good" where "good" is a label', expect="error", says="one of: good, bad")
async def label_with_a_word_before_it() -> Came:
    return await scored('"not good"', "mood", labels={"good": 1, "bad": 0})


@row("judge", "A judge answers a label that differs in case", expect="error", says="one of: good, bad")
async def label_in_another_case() -> Came:
    return await scored('"GOOD"', "mood", labels={"good": 1, "bad": 0})


@row("judge", "A judge answers a label and its number together", expect="error", says="is not on the scale")
async def label_in_an_object() -> Came:
    return await scored('{"good": 1}', "mood", labels={"good": 1, "bad": 0})


@row("judge", "A judge answers null for a score", expect="error", says="null is not on the scale")
async def no_score() -> Came:
    return await scored("null", "likert5")


async def scored_both(reply: Any) -> Came:
    criteria = [{"name": "a", "scale": "binary"}, {"name": "b", "scale": "likert5"}]
    text = reply if isinstance(reply, str) else json.dumps(reply)
    return await recorded({"response": "r"}, {"type": "criteria-judge"}, criteria=criteria, llm=Judge(text))


@row("judge", "A judge of two criteria leaves one out", expect="error", says="is missing")
async def criterion_left_out() -> Came:
    return await scored_both({"criterion_1": {"score": True}})


@row("judge", "A judge of two criteria scores one of them twice", expect="error", says="is there twice")
async def criterion_scored_twice() -> Came:
    part = '"criterion_1": {"score": true}'
    return await scored_both(f'{{{part}, {part}, "criterion_2": {{"score": 5}}}}')


@row("judge", "A judge scores a criterion that nobody declared", expect="error", says="criterion_3")
async def criterion_made_up() -> Came:
    good = {"score": 5}
    return await scored_both({"criterion_1": {"score": True}, "criterion_2": good, "criterion_3": good})


@row("judge", "A judge gives one readable score and one unreadable one", expect="error", says='"great"')
async def one_of_two_scores() -> Came:
    return await scored_both({"criterion_1": {"score": True}, "criterion_2": {"score": "great"}})


# -- verdicts


@row("judge", "A judge answers nothing", expect="error: judge", says="the reply is empty")
async def empty_reply() -> Came:
    return await judged("")


@row("judge", "A judge refuses in prose", expect="error: judge", says="not one JSON object and nothing else")
async def refusal() -> Came:
    return await judged("I'm sorry, but I can't help with that.")


@row("judge", "A judge writes its verdict in prose", expect="error: judge", says="not one JSON object")
async def verdict_in_prose() -> Came:
    return await judged("Yes, the criteria are clearly met: success_met is true.")


@row("judge", "A judge writes text around its verdict", expect="error: judge", says="not one JSON object")
async def text_around_a_verdict() -> Came:
    return await judged(f"The agent wrote {TRUE}, which I doubt.")


@row("judge", "A judge gives two verdicts", expect="error: judge", says="not one JSON object")
async def two_verdicts() -> Came:
    return await judged(f"{TRUE}\n{TRUE.replace('true', 'false')}")


@row("judge", "A judge answers the same question twice in one object", expect="error: judge", says="twice")
async def verdict_twice_in_one() -> Came:
    return await judged('{"reasoning": "r", "success_met": false, "success_met": true}')


@row("judge", 'A judge answers "true" as text', expect="error: judge", says="success_met")
async def true_as_text() -> Came:
    return await judged(TRUE.replace("true", '"true"'))


@row("judge", "A judge answers 1 for true", expect="error: judge", says="success_met")
async def verdict_as_a_number() -> Came:
    return await judged(TRUE.replace("true", "1"))


@row(
    "judge",
    "A judge answers true and contradicts itself in another field",
    expect="error: judge",
    says="overall",
)
async def contradicting_field() -> Came:
    return await judged('{"reasoning": "r", "success_met": true, "overall": "not met"}')


@row("judge", "A judge gives no reasons", expect="error: judge", says="reasoning")
async def verdict_without_reasons() -> Came:
    return await judged('{"success_met": true}')


@row("judge", "A judge is 900 percent sure", expect="error: judge", says="must be from 0 to 1")
async def confidence_off_the_scale() -> Came:
    return await judged('{"reasoning": "r", "success_met": true, "confidence": 9}')


@row("judge", "A judge's reply breaks off", expect="error: judge", says="not one JSON object")
async def reply_that_breaks_off() -> Came:
    return await judged('{"reasoning": "It gave a reference", "success_met": true')


@row("judge", "A judge wraps its verdict in another object", expect="error: judge", says="reasoning")
async def verdict_in_an_object() -> Came:
    return await judged(f'{{"verdict": {TRUE}}}')


@row(
    "judge",
    "Of two votes one says yes and one cannot be read",
    expect="error: judge",
    says="1 of 2 votes failed",
)
async def one_vote_of_two() -> Came:
    return await judged(TRUE, "maybe", votes=2)


@row(
    "judge",
    "Of three votes one says yes and two cannot be read",
    expect="error: judge",
    says="2 of 3 votes failed",
)
async def one_vote_of_three() -> Came:
    return await judged(TRUE, "maybe", votes=3)


@row("judge", "The votes of a judge are split evenly", expect="error: judge", says="split 1 to 1")
async def votes_split() -> Came:
    return await judged(TRUE, TRUE.replace("true", "false"), votes=2)


@row("judge", "A judge that raises an exception", expect="error: judge", says="no credit")
async def judge_that_raises() -> Came:
    class Broken:
        async def answer(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError("no credit")

    return await live(lambda messages: "Booked.", JUDGE, llm=Broken())


# -- judges that have nothing to judge


@row(
    "definition", "A judge has no criteria", expect="refused", says="needs successCriteria or failureCriteria"
)
async def judge_without_criteria() -> Came:
    return await live(lambda messages: "Hi", {"type": "llm-judge"}, llm=Judge(TRUE))


@row("definition", "A judge's criteria are blank", expect="refused", says="must not be blank")
async def judge_with_blank_criteria() -> Came:
    return await judged(TRUE, successCriteria="  ")


@row("definition", "The criteria of a scenario are blank", expect="refused", says="must not be blank")
async def scenario_with_blank_criteria() -> Came:
    return await live(
        lambda messages: "Hi", llm=Judge(TRUE), successCriteria=" ", failureCriteria="It is rude"
    )


@row(
    "definition", "The criteria of a judge are blank for one case", expect="refused", says="must not be blank"
)
async def case_with_blank_criteria() -> Came:
    return await live(
        lambda messages: "Hi", llm=Judge(TRUE), successCriteria="{{goal}}", cases=[{"vars": {"goal": ""}}]
    )


@row(
    "definition",
    "A scenario has a judge of criteria and declares none",
    expect="refused",
    says="nothing to judge",
)
async def scenario_without_declared_criteria() -> Came:
    return await live(lambda messages: "Hi", {"type": "criteria-judge"}, llm=Judge(WARM))


@row("judge", "A record is judged on criteria and none are declared", expect="error", says="declare criteria")
async def record_without_declared_criteria() -> Came:
    return await recorded({"response": "Hi"}, {"type": "criteria-judge"}, llm=Judge(WARM))


@row(
    "definition",
    "Two labels of a scale differ in case only",
    expect="refused",
    says="nobody could tell them apart",
)
async def labels_that_look_alike() -> Came:
    return await scored('"good"', "mood", labels={"good": 1, "Good": 0})
