"""What an evaluator may return: read strictly, or an error that names the part that cannot be read."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from pydantic import BaseModel

from evalstudio.evaluators.contract import EvaluationResult, EvaluatorContext
from evalstudio.evaluators.definition import define_evaluator
from evalstudio.evaluators.records import CriterionResult
from evalstudio.evaluators.results import Finding
from evalstudio.evaluators.running import run_entries
from evalstudio.testing import context


def numpy_like(kind: str, base: type = object, **methods: Any) -> type:
    return type(kind, (base,), {"__module__": "numpy", **methods})


YES = numpy_like("bool_", __bool__=lambda self: True)()
HALF = numpy_like("float64", float)(0.5)


async def findings(returned: Any, **settings: Any) -> list[Finding]:
    check = define_evaluator("check", **settings)(lambda ctx: returned)
    return await run_entries(
        [check.use()], context("hi", criteria=[{"name": "tone", "scale": "likert5"}]).facts
    )


@pytest.mark.parametrize(
    ("returned", "success", "value"),
    [
        ({"success": True}, True, None),
        ({"success": False, "reason": "no"}, False, None),
        ({"success": True, "value": 0.4}, True, 0.4),
        ({"score": 0.4}, False, 0.4),
        ({"value": 1}, True, 1.0),
        ({"success": YES}, True, None),
        (YES, True, None),
        (HALF, True, 0.5),
        ({"value": Decimal("0.25")}, False, 0.25),
        ({"value": Fraction(3, 4), "metadata": None, "reason": None}, True, 0.75),
        ({"criterionName": "tone", "score": 5}, True, 1.0),
        ({"criterion_name": "tone", "score": "2 stars", "reasoning": "cold"}, False, 0.25),
        (CriterionResult("tone", 4, "warm"), True, 0.75),
        ({"score": True}, True, 1.0),
        ({"success": True, "evaluatorType": "mine"}, True, None),
    ],
)
async def test_a_dict_of_the_shape_is_a_result(returned: Any, success: bool, value: float | None) -> None:
    (finding,) = await findings(returned)
    assert finding.error is None
    assert (finding.success, finding.value) == (success, value)


async def test_dicts_and_results_may_stand_in_one_list_and_are_numbered() -> None:
    several = await findings(
        [{"success": True}, EvaluationResult.failed("no"), {"criterionName": "tone", "score": 5}]
    )
    assert [(one.success, one.criterion_name, one.rule) for one in several] == [
        (True, None, 1),
        (False, None, 2),
        (True, "tone", None),
    ]
    assert several[1].to_json()["rule"] == 2


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ({"success": "false"}, "success is a str ('false'), not true or false"),
        ({"success": 1}, "success is a int, not true or false"),
        ({"value": "1"}, "value is a str ('1'), not a number"),
        ({"value": True}, "value is a bool, not a number"),
        ({"value": 1j}, "value is a complex, not a number"),
        ({"success": True, "decisive": "no"}, "decisive is a str"),
        ({"success": True, "skipped": 0}, "skipped is a int"),
        ({"success": True, "metadata": [1]}, "metadata is a list, not a dict"),
        ({"sucess": True}, "unknown key 'sucess'; did you mean success"),
        ({"success": True, 5: 6}, "unknown key 5"),
        ({"success": True, "reason": "a", "reasoning": "b"}, "says its reason twice"),
        ({}, "needs success, a value or a score"),
        ([True], "a list whose item 1 is a bool"),
        (EvaluationResult(success="yes"), "success is a str ('yes')"),  # pyright: ignore[reportArgumentType]
        ({"success": True, "score": 9, "criterionName": "tone"}, "outside 1–5"),
        ({"success": True, "score": 9, "criterionName": "zeal"}, 'no criterion is named "zeal"'),
    ],
)
async def test_what_cannot_be_read_is_an_error_that_names_it(returned: Any, told: str) -> None:
    (finding,) = await findings(returned)
    assert finding.error is not None
    assert told in finding.error
    assert not finding.success


async def test_one_unreadable_result_of_several_leaves_the_others() -> None:
    first, second = await findings([{"success": True}, {"succes": True}])
    assert first.holds
    assert second.error is not None


async def test_no_result_is_a_row_that_neither_holds_nor_fails() -> None:
    (finding,) = await findings([])
    assert (finding.skipped, finding.reason) == (True, "returned no result")


async def test_a_threshold_and_a_unit_stay_with_the_finding() -> None:
    class Limit(BaseModel):
        threshold: float = 0.8

    def check(ctx: EvaluatorContext[Limit]) -> float:
        return 0.7

    (finding,) = await run_entries([define_evaluator(check).use()], context("x").facts)
    assert (finding.success, finding.threshold, finding.to_json()["threshold"]) == (False, 0.8, 0.8)
    (measured,) = await findings(3, kind="metric", unit="lines")
    assert (measured.unit, measured.to_json()["unit"]) == ("lines", "lines")
    assert "threshold" not in measured.to_json()


# --- what an evaluator changes is its own -------------------------------------------------------------


def spoil(ctx: EvaluatorContext[Any]) -> None:
    ctx.messages[0].content = "changed"
    ctx.messages.append(ctx.messages[0])
    ctx.last_invocation.messages.clear()
    ctx.replies.append("more")
    ctx.context["order"]["id"] = 7  # pyright: ignore[reportIndexIssue]
    ctx.ground_truth.append("x")
    ctx.metadata["new"] = 1  # pyright: ignore[reportIndexIssue]
    ctx.state["left"].clear()  # pyright: ignore[reportOptionalSubscript]
    ctx.criteria[0].labels["bad"] = 1.0  # pyright: ignore[reportOptionalSubscript]
    ctx.tool_calls.clear()
    ctx.config["words"].append("y")


@pytest.mark.parametrize("style", ["inline", "thread", "async", "class"])
async def test_an_evaluator_that_changes_what_it_sees_changes_nothing(style: str) -> None:
    facts = context(
        "hello",
        context={"order": {"id": 1}},
        ground_truth=["a"],
        metadata={"old": 1},
        state={"left": ["b"]},
        criteria=[{"name": "c", "scale": "word", "labels": {"bad": 0.0}}],
    ).facts
    before = repr(facts)

    async def spoils_async(ctx: EvaluatorContext[Any]) -> bool:
        await asyncio.sleep(0)
        spoil(ctx)
        return True

    def spoils(ctx: EvaluatorContext[Any]) -> bool:
        spoil(ctx)
        return True

    schema = {"type": "object", "properties": {"words": {"type": "array", "default": ["x"]}}}
    function = spoils_async if style == "async" else spoils
    entry = define_evaluator("spoils", inline=style == "inline", config=schema)(function).use()
    if style == "class":
        entry = spoiling_class().use()
    (finding,) = await run_entries([entry], facts)
    assert finding.error is None
    assert repr(facts) == before
    if style != "class":
        assert entry.config == {"words": ["x"]}


def spoiling_class() -> Any:
    from evalstudio.evaluators.definition import adapt_class

    class Spoils:
        type = "spoils"

        def evaluate(self, record: Any, criteria: Any) -> list[Any]:
            record.message_history[0].content = "changed"
            record.context["order"]["id"] = 7
            record.ground_truth.append("x")
            return [{"success": True}]

    return adapt_class(Spoils)


async def test_metadata_that_is_changed_after_the_return_stays_what_it_was() -> None:
    kept: dict[str, Any] = {"words": ["a"]}
    (finding,) = await findings(EvaluationResult(True, metadata=kept))
    kept["words"].append("b")
    kept["more"] = 1
    assert finding.metadata == {"words": ["a"]}


async def test_what_nobody_can_copy_is_handed_on_as_it_is() -> None:
    lock = asyncio.Lock()

    def sees(ctx: EvaluatorContext[Any]) -> bool:
        return ctx.context["lock"] is lock and ctx.context["self"]["self"] is ctx.context["self"]

    around: dict[str, Any] = {"lock": lock}
    around["self"] = around
    (finding,) = await run_entries([define_evaluator(sees).use()], context("x", context=around).facts)
    assert finding.holds, finding.reason
