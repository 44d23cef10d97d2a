"""Marks of people that cannot be read to the letter."""

from __future__ import annotations

from typing import Any

from .table import Came, recorded, row

CRITERIA = [
    {"name": "helpful", "scale": "likert5"},
    {"name": "share", "scale": "numeric", "range": [0, 10]},
    {"name": "safe", "scale": "binary"},
    {"name": "mood", "scale": "mood", "labels": {"good": 1, "bad": 0}},
]


async def marked(name: str, score: Any) -> Came:
    use = {"type": "human", "config": {"criterionName": name, "score": score}}
    return await recorded({"response": "Hi"}, use, criteria=CRITERIA)


async def fed_back(feedback: Any) -> Came:
    use = {"type": "human", "config": {"sourceField": "metadata.feedback"}}
    record = {"response": "Hi", "metadata": {"feedback": feedback}}
    return await recorded(record, use, criteria=CRITERIA)


@row("judge", 'A person marks "8/10" on a scale from 0 to 10', expect="error", says="8/10")
async def mark_as_a_fraction() -> Came:
    return await marked("share", "8/10")


@row("judge", 'A person marks "4 stars"', expect="error", says="4 stars")
async def mark_in_stars() -> Came:
    return await marked("helpful", "4 stars")


@row("judge", "A person marks 11 on a scale from 0 to 10", expect="error", says="from 0 to 10")
async def mark_above_the_range() -> Came:
    return await marked("share", 11)


@row("judge", "A person marks 80 on a scale from 1 to 5", expect="error", says="from 1 (worst) to 5 (best)")
async def mark_of_a_hundred() -> Came:
    return await marked("helpful", 80)


@row("judge", "A person marks true on a scale from 1 to 5", expect="error", says="true is not on the scale")
async def mark_of_true() -> Came:
    return await marked("helpful", True)


@row("judge", 'A person marks "maybe" where yes or no counts', expect="error", says="true or false")
async def mark_of_maybe() -> Came:
    return await marked("safe", "maybe")


@row(
    "judge", 'A person marks "good, mostly" where "good" is a label', expect="error", says="one of: good, bad"
)
async def mark_with_more_words() -> Came:
    return await marked("mood", "good, mostly")


@row("judge", "A person's mark is not a number at all (NaN)", expect="error", says="is not on the scale")
async def mark_that_is_no_number() -> Came:
    return await marked("share", float("nan"))


@row(
    "judge",
    "A person's mark is missing in the feedback of a record",
    expect="error",
    says="score: is missing",
)
async def mark_left_out() -> Came:
    return await fed_back([{"criterionName": "safe"}])


@row(
    "judge",
    "A record's feedback names a criterion that is not declared",
    expect="error",
    says="did you mean helpful?",
)
async def mark_on_a_misspelled_criterion() -> Came:
    return await fed_back([{"criterionName": "helpfull", "score": 5}])


@row("judge", "Beside a good mark a record has one that cannot be read", expect="error", says="4/5")
async def mark_beside_a_good_one() -> Came:
    good = {"criterionName": "safe", "score": True}
    return await fed_back([good, {"criterionName": "helpful", "score": "4/5"}])


@row("judge", "A mark stands twice in one entry of the feedback", expect="error", says="is there twice")
async def mark_given_twice() -> Came:
    return await fed_back('[{"criterionName": "safe", "score": false, "score": true}]')


@row("judge", "A record's feedback is text that is not JSON", expect="error", says="it is text, but not JSON")
async def feedback_in_prose() -> Came:
    return await fed_back("five stars")


@row("judge", "A person marks the lowest point of a scale that begins below 0", expect="fail")
async def mark_below_zero() -> Came:
    criteria = [{"name": "tone", "scale": "numeric", "range": [-5, 5]}]
    use = {"type": "human", "config": {"criterionName": "tone", "score": -5}}
    return await recorded({"response": "Hi"}, use, criteria=criteria)
