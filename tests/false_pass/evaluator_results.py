"""Evaluators whose results say less than they seem to, or that change what they look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.models import ScriptedLlm

from evalstudio import (
    CriterionResult,
    EvaluationResult,
    create_registry,
    define_evaluator,
    run_evaluation,
)

from .table import Came, Expected, live, row

QUALITY = {"name": "quality", "scale": "likert5"}
TOXIC = {"type": "toxicity", "config": {"toxicTerms": ["idiot"]}}
SAID = "You idiot."


def says(text: str) -> Callable[[Any], str]:
    return lambda messages: text


def returning(
    name: str, attempt: str, returned: Any, *, says_why: str, expect: Expected = "error: evaluator"
) -> None:
    """A row whose evaluator returns one thing and looks at nothing."""

    async def run() -> Came:
        check = define_evaluator("check")(lambda ctx: returned)
        return await live(says("Hello"), check.use(), criteria=[QUALITY])

    run.__name__ = f"returns_{name}"
    row("data", attempt, expect=expect, says=says_why)(run)


class Numpy:
    """Stands for numpy's own bool, which is no ``bool`` and need not be installed."""

    def __init__(self, truth: bool) -> None:
        self.truth = truth

    def __bool__(self) -> bool:
        return self.truth


Numpy.__name__, Numpy.__module__ = "bool_", "numpy"

returning(
    "text_success", 'An evaluator returns success: "false"', {"success": "false"}, says_why="success is a str"
)
returning("number_success", "An evaluator returns success: 1", {"success": 1}, says_why="success is a int")
returning("yes", 'An evaluator returns success: "yes"', {"success": "yes"}, says_why="not true or false")
returning(
    "text_in_a_result",
    "A result object has text for its success",
    EvaluationResult(success="no"),  # pyright: ignore[reportArgumentType]
    says_why="success is a str ('no')",
)
returning(
    "numpy_false", "An evaluator returns numpy's False", Numpy(False), says_why="Check failed", expect="fail"
)
returning(
    "misspelled_key",
    "An evaluator misspells success in the dict it returns",
    {"sucess": False, "score": 1},
    says_why="'sucess'; did you mean success",
)
returning(
    "empty_dict", "An evaluator returns an empty dict", {}, says_why="needs success, a value or a score"
)
returning("text_value", 'An evaluator returns the value "0.9"', {"value": "0.9"}, says_why="value is a str")
returning("bool_value", "An evaluator returns the value true", {"value": True}, says_why="value is a bool")
returning("nan", "An evaluator returns NaN", float("nan"), says_why="not a finite number")
returning("infinity", "An evaluator returns infinity", float("inf"), says_why="not a finite number")
returning("percent", "An assertion returns 95 as its score from 0 to 1", 95, says_why="outside 0–1")
returning("huge", "An evaluator returns a number no float can hold", 10**400, says_why="too large")
returning("nothing", "An evaluator forgets to return anything", None, says_why="returned nothing")
returning("text", "An evaluator returns a text", "pass", says_why="returned a str ('pass')")
returning(
    "true_as_text", "An evaluator returns a list with a text in it", ["pass"], says_why="item 1 is a str"
)
returning(
    "bad_in_a_list",
    "One of several results cannot be read and the others pass",
    [{"success": True}, {"success": True, "scroe": 5}],
    says_why="'scroe'",
)
returning(
    "failure_in_a_list",
    "One of several results fails and the others pass",
    [{"success": True}, {"success": False, "reason": "too long"}],
    says_why="too long",
    expect="fail",
)
returning(
    "error_and_success",
    "A result is a success and an error at once",
    {"success": True, "error": "no data"},
    says_why="no data",
)
returning(
    "off_the_scale",
    "A successful result has a score that is not on its criterion's scale",
    {"success": True, "score": 9, "criterionName": "quality"},
    says_why="outside 1–5",
)
returning(
    "no_such_criterion",
    "A successful result scores a criterion that nobody declared",
    {"success": True, "score": 5, "criterionName": "qualty"},
    says_why='no criterion is named "qualty"',
)
returning("no_results", "An evaluator returns an empty list", [], says_why="", expect="unasserted")
returning(
    "skips",
    "The only evaluator skips",
    EvaluationResult.skip("not today"),
    says_why="",
    expect="unasserted",
)


async def scored_by_class(results: list[Any]) -> Came:
    class Scores:
        type = "scores"

        async def evaluate(self, record: Any, criteria: Any) -> list[Any]:
            return results

    registry = create_registry()
    registry.register(Scores)
    settings = {"criteria": [QUALITY], "evaluatorConfigs": [{"type": "scores"}]}
    result = await run_evaluation({"response": "Hello"}, settings, registry=registry)
    return Came(result.outcome, "; ".join([*result.run_errors, *(r.error or "" for r in result.results)]))


@row(
    "data",
    "A class-style evaluator scores a criterion that nobody declared",
    expect="error",
    says='no criterion is named "tone"',
)
async def class_scores_another_criterion() -> Came:
    return await scored_by_class([CriterionResult("tone", 5)])


@row("data", "A class-style evaluator's score is not on the scale", expect="error", says="outside 1–5")
async def class_scores_off_the_scale() -> Came:
    return await scored_by_class([CriterionResult("quality", 55)])


@row(
    "data",
    "A class-style evaluator leaves out the score",
    expect="error",
    says="needs success, a value or a score",
)
async def class_without_score() -> Came:
    return await scored_by_class([{"criterionName": "quality", "reasoning": "fine"}])


@row("data", "A class-style evaluator returns a dict with an unknown key", expect="error", says="'scores'")
async def class_with_unknown_key() -> Came:
    return await scored_by_class([{"criterionName": "quality", "scores": 5}])


def first(change: Callable[[Any], object]) -> Any:
    """An entry that runs before its neighbours and changes what it sees."""

    def meddles(ctx: Any) -> bool:
        change(ctx)
        return True

    return define_evaluator("meddles", inline=True)(meddles).use()


@row(
    "data",
    "An evaluator rewrites the agent's message before its neighbours look",
    expect="fail",
    says="idiot",
)
async def message_rewritten() -> Came:
    return await live(says(SAID), first(lambda ctx: setattr(ctx.messages[-1], "content", "Dear sir.")), TOXIC)


@row("data", "An evaluator rewrites the last invocation's messages", expect="fail", says="toxic terms found")
async def invocation_rewritten() -> Came:
    return await live(says(SAID), first(lambda ctx: ctx.last_invocation.messages.clear()), TOXIC)


@row("data", "An evaluator adds the answer that another one looks for", expect="fail", says="no match")
async def answer_added() -> Came:
    def add(ctx: Any) -> None:
        copied = ctx.messages[-1].model_copy(update={"content": "BK-123"})
        ctx.messages.append(copied)
        ctx.last_invocation.messages.append(copied)

    return await live(says(SAID), first(add), {"type": "regex", "config": {"pattern": "BK-[0-9]+"}})


@row("data", "An evaluator removes a forbidden tool call", expect="fail", says="forbidden")
async def call_removed() -> Came:
    def agent(messages: Any) -> Any:
        call = {"id": "1", "function": {"name": "delete", "arguments": "{}"}}
        return {"role": "assistant", "content": "Done.", "tool_calls": [call]}

    def remove(ctx: Any) -> None:
        ctx.messages[-1].tool_calls.clear()
        ctx.tool_calls.clear()

    rules = [{"tool": "delete", "forbidden": True}]
    return await live(agent, first(remove), {"type": "tool-usage", "config": {"rules": rules}})


@row(
    "data", "An evaluator changes the ground truth its neighbour compares with", expect="fail", says="missing"
)
async def ground_truth_changed() -> Came:
    check = {"type": "keyword-coverage", "config": {"keywordsSourceField": "groundTruth"}}
    change = first(lambda ctx: ctx.ground_truth.__setitem__(slice(None), ["idiot"]))
    return await live(says(SAID), change, check, groundTruth=["sorry", "refund"])


@row("data", "An evaluator changes the context its neighbour reads", expect="fail", says="the state differs")
async def context_changed() -> Came:
    check = {"type": "state-match", "config": {"expected": {"booked": True}}}
    change = first(lambda ctx: ctx.context["state"].update(booked=True))
    return await live(says(SAID), change, check, context={"state": {"booked": False}})


@row("data", "An evaluator changes its own config for the next turn", expect="fail", says="Check failed")
async def config_changed() -> Came:
    def check(ctx: Any) -> bool:
        strict = ctx.config["strict"]
        ctx.config["strict"] = False
        return ctx.turn == 1 or not strict

    schema = {"type": "object", "properties": {"strict": {"type": "boolean", "default": True}}}
    entry = define_evaluator("check", config=schema)(check).use()
    return await live(says(SAID), entry, script=["Hello", "Again"])


async def ended_by_the_user(check: Any, **fields: Any) -> Came:
    """A conversation that a simulated user ends after its first turn, which nobody knew before."""
    turns = [{"message": "Hello", "stop": False}, {"message": "", "stop": True}]
    llm = ScriptedLlm(persona=turns)
    return await live(says(SAID), check, script=[], instructions="Say hello.", llm=llm, **fields)


@row(
    "data",
    "An evaluator that waits for the last turn is not told that this was it",
    expect="fail",
    says="no farewell",
)
async def last_turn_unknown() -> Came:
    def farewell(ctx: Any) -> EvaluationResult:
        if not ctx.is_final:
            return EvaluationResult.passed("more is to come")
        return EvaluationResult.failed("no farewell")

    return await ended_by_the_user(define_evaluator("farewell")(farewell).use())


@row(
    "data",
    "An evaluator errs only when it is told that the turn is the last",
    expect="error: evaluator",
    says="no end",
)
async def last_turn_raises() -> Came:
    def ends(ctx: Any) -> bool:
        if ctx.is_final:
            raise RuntimeError("no end")
        return True

    return await ended_by_the_user(define_evaluator("ends")(ends).use())
