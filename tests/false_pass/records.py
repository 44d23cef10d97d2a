"""Records whose scores cannot be read, and evaluators that look at what is not there."""

from __future__ import annotations

import math
from typing import Any

from evalstudio import CriterionResult, EvaluationResult, EvaluatorContext, define_evaluator

from .table import Came, live, recorded, row

SAID = {"response": "We pay for the parcel.", "groundTruth": "We pay for the parcel."}
TONE = {"name": "tone", "scale": "likert5"}
OK = {"type": "rule-based", "config": {"rules": [{"type": "length", "min": 1}]}}


def scoring(score: Any, name: str = "tone", **more: Any) -> Any:
    """An evaluator that gives a criterion this score and calls it a success."""

    @define_evaluator(type="scores")
    def scores(ctx: EvaluatorContext[Any]) -> EvaluationResult:
        return EvaluationResult(True, score=score, criterion_name=name, **more)

    return scores


def class_style(*results: Any) -> Any:
    class Given:
        type = "given"

        async def evaluate(self, record: Any, criteria: Any) -> Any:
            return list(results)

    return Given()


@row("data", "A score is NaN", expect="error", says="not a finite number")
async def score_is_nan() -> Came:
    return await recorded(SAID, OK, scoring(math.nan), criteria=[TONE])


@row("data", "A score is infinite", expect="error", says="not a finite number")
async def score_is_infinite() -> Came:
    return await recorded(SAID, OK, scoring(math.inf), criteria=[TONE])


@row("data", "A score lies above the end of its scale", expect="error", says="9 is outside 1–5")
async def score_above_the_scale() -> Came:
    return await recorded(SAID, OK, scoring(9), criteria=[TONE])


@row("data", "A score is 0 on a scale that begins with 1", expect="error", says="0 is outside 1–5")
async def score_below_the_scale() -> Came:
    return await recorded(SAID, OK, scoring(0), criteria=[TONE])


@row("data", "A word is no word of its scale", expect="error", says="not a word for yes or no")
async def score_is_another_word() -> Came:
    return await recorded(SAID, OK, scoring("splendid"), criteria=[{"name": "tone", "scale": "binary"}])


@row("data", "A number is given on a scale of words without a range", expect="error", says="declare labels")
async def number_on_a_scale_of_words() -> Came:
    return await recorded(SAID, scoring(3), criteria=[{"name": "tone", "scale": "mood"}])


@row("data", "A score is negative on a scale without a range", expect="error", says="outside 0–100")
async def negative_without_a_range() -> Came:
    return await recorded(SAID, scoring(-0.4), criteria=[{"name": "tone", "scale": "numeric"}])


@row("data", "A score of a class-style evaluator is off its scale", expect="error", says="outside 1–5")
async def class_style_off_the_scale() -> Came:
    return await recorded(SAID, OK, class_style(CriterionResult("tone", 12)), criteria=[TONE])


@row(
    "data", "A class-style evaluator scores a criterion nobody declared", expect="error", says='named "tnoe"'
)
async def class_style_on_an_unknown_criterion() -> Came:
    return await recorded(SAID, OK, class_style(CriterionResult("tnoe", 1)), criteria=[TONE])


@row("data", "A live evaluator gives a score off its scale", expect="error: evaluator", says="outside 1–5")
async def live_score_off_the_scale() -> Came:
    return await live(lambda messages: "Hello", scoring(7), criteria=[TONE])


@row("data", "A sum without bounds is to score a criterion", expect="error", says="unbounded sum")
async def unbounded_sum() -> Came:
    entry = {"type": "sentiment", "config": {"criterionName": "mood", "outputType": "rawScore"}}
    return await recorded(SAID, OK, entry, criteria=[{"name": "mood", "scale": "numeric"}])


@row("data", "A metric that scores a criterion cannot find its text", expect="error", says="no text at")
async def metric_on_a_criterion_finds_nothing() -> Came:
    entry = {"type": "sentiment", "config": {"criterionName": "mood", "sourceField": "context.reply"}}
    return await recorded(SAID, OK, entry, criteria=[{"name": "mood", "scale": "numeric"}])


@row("judge", "A person's mark is off the scale", expect="error", says="is not on the scale")
async def mark_off_the_scale() -> Came:
    record = SAID | {"metadata": {"marks": [{"criterionName": "tone", "score": 50}]}}
    return await recorded(record, OK, {"type": "human", "sourceField": "metadata.marks"}, criteria=[TONE])


@row("judge", "A person's mark is on a criterion nobody declared", expect="error", says='"tnoe"')
async def mark_on_an_unknown_criterion() -> Came:
    record = SAID | {"metadata": {"marks": [{"criterionName": "tnoe", "score": 5}]}}
    return await recorded(record, OK, {"type": "human", "sourceField": "metadata.marks"}, criteria=[TONE])


@row("judge", "A person's marks are not JSON", expect="error", says="not JSON")
async def marks_are_not_json() -> Came:
    record = SAID | {"metadata": {"marks": "five stars"}}
    return await recorded(record, OK, {"type": "human", "sourceField": "metadata.marks"}, criteria=[TONE])


@row(
    "definition", "A config names a criterion that is misspelled", expect="refused", says="did you mean tone?"
)
async def misspelled_criterion_of_a_config() -> Came:
    entry = {"type": "lexical-similarity", "config": {"criterionName": "tnoe"}}
    return await recorded(SAID, OK, entry, criteria=[TONE])


@row(
    "definition",
    "A rule names a criterion that is misspelled",
    expect="refused",
    says="rules[0].criterionName",
)
async def misspelled_criterion_of_a_rule() -> Came:
    rules = [{"type": "length", "min": 1, "criterionName": "tnoe"}]
    return await recorded(SAID, OK, {"type": "rule-based", "config": {"rules": rules}}, criteria=[TONE])


@row(
    "definition", "A rule of a scenario names a criterion that is misspelled", expect="refused", says="tone?"
)
async def misspelled_criterion_of_a_scenario_rule() -> Came:
    rules = [{"tool": "refund", "forbidden": True, "criterionName": "tnoe"}]
    entry = {"type": "tool-usage", "config": {"rules": rules}}
    return await live(lambda messages: "Hello", entry, criteria=[TONE])


@row("definition", "An evaluator names a criterion and none is declared", expect="refused", says="declare it")
async def criterion_without_any_declared() -> Came:
    return await recorded(SAID, OK, {"type": "lexical-similarity", "config": {"criterionName": "tone"}})


@row("data", "A record's own criteria lack the one that an evaluator names", expect="error", says="tnoe")
async def own_criteria_lack_a_name() -> Came:
    record = SAID | {"criteria": [TONE]}
    return await recorded(record, OK, {"type": "lexical-similarity", "config": {"criterionName": "tnoe"}})


@row("data", "There is no reference to compare with", expect="error", says='no text at "groundTruth"')
async def reference_missing() -> Came:
    return await recorded({"response": "Hi"}, OK, {"type": "lexical-similarity"})


@row("data", "There is no reference to compare the meaning with", expect="error", says="groundTruth")
async def reference_of_meaning_missing() -> Came:
    return await recorded({"response": "Hi"}, OK, {"type": "nlp-accuracy"})


@row(
    "data",
    "A forbidden word is looked for at a path that leads nowhere",
    expect="error",
    says="context.reply",
)
async def toxicity_at_no_text() -> Came:
    config = {"toxicTerms": ["idiot"], "sourceField": "context.reply"}
    return await recorded(SAID, OK, {"type": "toxicity", "config": config})


@row("data", "A rule must not match at a path that leads nowhere", expect="error", says="context.reply")
async def rule_at_no_text() -> Came:
    rule = {
        "type": "regex",
        "pattern": "refund",
        "expectedOutcome": "no_match",
        "sourceField": "context.reply",
    }
    return await recorded(SAID, {"type": "rule-based", "config": {"rules": [rule]}})


@row("data", "The expected keywords are read from where there are none", expect="error", says="context.words")
async def keywords_at_no_list() -> Came:
    entry = {"type": "keyword-coverage", "config": {"keywordsSourceField": "context.words"}}
    return await recorded(SAID, OK, entry)


@row("data", "The list of expected keywords in the record is empty", expect="error")
async def keywords_of_the_record_are_empty() -> Came:
    entry = {"type": "keyword-coverage", "config": {"keywordsSourceField": "context.words"}}
    return await recorded(SAID | {"context": {"words": []}}, OK, entry)


@row("data", "The response is an object where text is checked", expect="error", says="text")
async def response_is_an_object() -> Came:
    config = {"toxicTerms": ["idiot"]}
    return await recorded({"response": {"reply": "Hi"}}, {"type": "toxicity", "config": config})


@row("data", "A latency budget is held against a record without a latency", expect="error", says="latency")
async def budget_without_a_latency() -> Came:
    return await recorded(SAID, OK, {"type": "latency-budget", "config": {"maxMs": 900}})


@row("data", "A token budget is held against a record without usage", expect="error", says="token")
async def budget_without_usage() -> Came:
    return await recorded(SAID, OK, {"type": "token-budget", "config": {"maxTokens": 9}})
