"""Running the evaluators of a turn: whatever one of them does, the others keep their results."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any

import pytest
from pydantic import BaseModel

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.aggregate import run_evaluators
from evalstudio.evaluators.contract import EvaluationResult, EvaluatorContext
from evalstudio.evaluators.definition import EvaluatorDefinition, define_evaluator, with_keys
from evalstudio.evaluators.running import run_entries, run_turn
from evalstudio.testing import context


class Words(BaseModel):
    words: list[str] = ["hello"]


@define_evaluator(label="Greets")
async def greets_user(ctx: EvaluatorContext[Words]) -> EvaluationResult:
    """The agent greets the user.

    More text that is not part of the description.
    """
    return (
        EvaluationResult.passed("ok")
        if ctx.config.words[0] in ctx.response
        else EvaluationResult.failed("no")
    )


@define_evaluator
def always_holds(ctx: EvaluatorContext[Any]) -> bool:
    return True


def test_what_is_not_given_is_read_off_the_function() -> None:
    assert greets_user.type == "greets-user"
    assert greets_user.label == "Greets"
    assert greets_user.description == "The agent greets the user."
    assert greets_user.config.schema["properties"]["words"]["default"] == ["hello"]
    assert always_holds.type == "always-holds"
    assert always_holds.label == "Always Holds"
    assert (greets_user.kind, greets_user.gate, greets_user.reduce) == ("assertion", "always", "last")


async def test_a_definition_stays_callable() -> None:
    result = await greets_user(context("hello there", config=Words()))
    assert result.success
    assert result.reason == "ok"
    assert always_holds(context("x")) is True


def test_a_config_model_defined_inside_a_function_is_found() -> None:
    class Local(BaseModel):
        limit: int = 3

    @define_evaluator()
    def local_one(ctx: EvaluatorContext[Local]) -> bool:
        return ctx.config.limit == 3

    assert local_one.use().config.limit == 3


def test_an_annotation_that_cannot_be_read_says_what_to_do() -> None:
    def bad(ctx: EvaluatorContext[Nowhere]) -> bool:  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
        return True

    with pytest.raises(TypeError, match="pass config="):
        define_evaluator()(bad)


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"wrods": ["hi"]}, "wrods: unknown key; did you mean words"),
        ({"words": "hi"}, "words: expected a list"),
        ({"words": [1]}, r"words\[0\]: expected text"),
    ],
)
def test_a_wrong_config_is_refused_with_its_path(config: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        greets_user.use(config)


def test_a_raw_json_schema_config_has_its_defaults_filled_in() -> None:
    schema = {
        "type": "object",
        "properties": {
            "depth": {"type": "integer", "default": 2},
            "nested": {"type": "object", "properties": {"on": {"type": "boolean", "default": True}}},
        },
        "additionalProperties": False,
    }

    @define_evaluator("raw", config=schema)
    def raw(ctx: EvaluatorContext[dict[str, Any]]) -> bool:
        return ctx.config["depth"] == 2

    assert raw.use(nested={}).config == {"depth": 2, "nested": {"on": True}}
    with pytest.raises(InvalidInput, match="depth"):
        raw.use(depth="deep")


def test_an_evaluator_without_config_refuses_one() -> None:
    with pytest.raises(InvalidInput, match="x: takes no config"):
        always_holds.use(x=1)


def test_an_unknown_gate_is_refused() -> None:
    with pytest.raises(InvalidInput, match="gate: 'never'"):
        always_holds.use(gate="never")  # pyright: ignore[reportArgumentType]


def test_keys_are_names_else_types_else_numbered() -> None:
    entries = with_keys([always_holds.use(), always_holds.use(), always_holds.use(name="third")])
    assert [entry.key for entry in entries] == ["always-holds", "always-holds#2", "third"]
    with pytest.raises(InvalidInput, match="used twice"):
        with_keys([always_holds.use(name="a"), always_holds.use(name="a")])
    tricky = with_keys([always_holds.use(), always_holds.use(name="always-holds#2"), always_holds.use()])
    assert len({entry.key for entry in tricky}) == 3


def define(function: Any, **settings: Any) -> EvaluatorDefinition:
    return define_evaluator(**settings)(function)


async def raises(ctx: EvaluatorContext[Any]) -> bool:
    raise RuntimeError("kaputt")


async def raises_without_words(ctx: EvaluatorContext[Any]) -> bool:
    raise KeyError


async def hangs(ctx: EvaluatorContext[Any]) -> bool:
    await asyncio.sleep(60)
    return True


async def swallows_cancellation(ctx: EvaluatorContext[Any]) -> bool:
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if time.monotonic() > ctx.metadata["until"]:
                raise


def returns_none(ctx: EvaluatorContext[Any]) -> Any:
    return None


def returns_text(ctx: EvaluatorContext[Any]) -> Any:
    return "fine"


def returns_nan(ctx: EvaluatorContext[Any]) -> float:
    return float("nan")


def returns_95(ctx: EvaluatorContext[Any]) -> float:
    return 95


def exits(ctx: EvaluatorContext[Any]) -> bool:
    raise SystemExit(3)


def blocks(ctx: EvaluatorContext[Any]) -> bool:
    time.sleep(60)
    return True


async def cancels_itself(ctx: EvaluatorContext[Any]) -> bool:
    raise asyncio.CancelledError


def mixed_list(ctx: EvaluatorContext[Any]) -> Any:
    return [EvaluationResult.passed(), "x"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (raises, "Evaluator error: RuntimeError: kaputt (tests/evaluators/test_running.py:"),
        (raises_without_words, "Evaluator error: KeyError"),
        (hangs, "Evaluator error: timed out after 0.2 s"),
        (blocks, "Evaluator error: timed out after 0.2 s"),
        (returns_none, "Evaluator error: returned nothing"),
        (returns_text, "Evaluator error: returned a str"),
        (returns_nan, "Evaluator error: value nan is not a finite number"),
        (returns_95, "Evaluator error: value 95 of an assertion is outside 0–1"),
        (exits, "Evaluator error: SystemExit: 3"),
        (cancels_itself, "Evaluator error: the evaluator cancelled itself"),
        (mixed_list, "Evaluator error: returned a list"),
    ],
)
async def test_what_goes_wrong_is_an_error_of_that_evaluator_alone(function: Any, message: str) -> None:
    broken = define(function, timeout=0.2)
    entries = with_keys([always_holds.use(name="before"), broken.use(), greets_user.use(name="after")])
    before, error, after = await run_entries(entries, context("hello").facts)
    assert before.holds
    assert after.holds
    assert error.reason.startswith(message)
    assert error.error is not None
    assert not error.success
    assert error.type == broken.type
    assert error.label == broken.label


async def test_an_errored_metric_has_success_and_no_value() -> None:
    broken = define(raises, kind="metric")
    verdict = await run_evaluators([broken.use()], context("x").facts)
    assert verdict.outcome == "unasserted"
    assert verdict.metrics == {}
    (result,) = verdict.evaluator_results
    assert result.success
    assert result.value is None
    assert result.error is not None
    assert result.error.startswith("RuntimeError: kaputt")


async def test_the_loop_stays_responsive_while_a_sync_evaluator_blocks() -> None:
    ticked = threading.Event()

    def blocks(ctx: EvaluatorContext[Any]) -> bool:
        return ticked.wait(30)

    async def tick() -> None:
        for _ in range(10):
            await asyncio.sleep(0.01)
        ticked.set()

    ticker = asyncio.create_task(tick())
    (result,) = await run_entries([define(blocks).use()], context("x").facts)
    assert result.holds, "the loop stood still until the evaluator gave up"
    await ticker


async def test_blocking_evaluators_run_beside_each_other() -> None:
    together = threading.Barrier(8)

    def slow(ctx: EvaluatorContext[Any]) -> bool:
        together.wait(30)
        return True

    results = await run_entries(with_keys([define(slow).use() for _ in range(8)]), context("x").facts)
    assert all(result.holds for result in results)


async def test_an_async_evaluator_that_blocks_the_loop_is_named_in_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def rude_one(ctx: EvaluatorContext[Any]) -> bool:
        time.sleep(0.3)  # noqa: ASYNC251
        return True

    with caplog.at_level(logging.WARNING, logger="evalstudio"):
        (result,) = await run_entries([define(rude_one).use()], context("x").facts)
    assert result.holds
    assert '"rude-one" blocked the event loop' in caplog.text


async def test_an_evaluator_that_swallows_its_cancellation_cannot_hold_up_the_turn() -> None:
    stubborn = define(swallows_cancellation, timeout=0.1)
    facts = context("x", metadata={"until": time.monotonic() + 6}).facts
    started, before = time.perf_counter(), asyncio.all_tasks()
    (result,) = await run_entries([stubborn.use()], facts)
    assert result.error == "timed out after 0.1 s"
    assert time.perf_counter() - started < 5.5
    for task in asyncio.all_tasks() - before:
        while not task.done():
            task.cancel()
            await asyncio.sleep(0.1)


async def test_cancelling_the_turn_is_a_cancellation_and_leaves_nothing_running() -> None:
    entries = with_keys([define(hangs).use(), define(hangs).use()])
    before = asyncio.all_tasks()
    turn = asyncio.create_task(run_entries(entries, context("x").facts))
    await asyncio.sleep(0.05)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert asyncio.all_tasks() == before


async def test_model_backed_evaluators_wait_for_the_fast_ones_and_stay_home_after_a_failure() -> None:
    seen: list[str] = []

    def fails(ctx: EvaluatorContext[Any]) -> bool:
        seen.append("fast")
        return False

    async def judge(ctx: EvaluatorContext[Any]) -> bool:
        seen.append("llm")
        return True

    entries = with_keys([define(judge, cost="llm").use(), define(fails).use()])
    results = await run_turn(entries, context("x").facts)
    assert seen == ["fast"]
    spared, failed = results
    assert (spared.type, failed.type) == ("judge", "fails")
    assert spared.skipped
    assert (spared.reason, spared.metadata) == (
        "not asked: Fails had already failed",
        {"notAsked": True},
    )
    results = await run_turn(entries, context("x").facts, models_after_failure=True)
    assert [result.type for result in results] == ["judge", "fails"]


async def test_shorthands_bools_and_numbers_are_enough() -> None:
    def half(ctx: EvaluatorContext[Any]) -> float:
        return 0.5

    def low(ctx: EvaluatorContext[Any]) -> float:
        return 0.49

    def three(ctx: EvaluatorContext[Any]) -> int:
        return 3

    def yes(ctx: EvaluatorContext[Any]) -> bool:
        return True

    def scored(ctx: EvaluatorContext[Any]) -> EvaluationResult:
        return EvaluationResult(True, score=0.7, reason="r")

    entries = with_keys(
        [
            define(half).use(),
            define(low).use(),
            define(three, kind="metric").use(),
            define(yes, kind="metric").use(),
            define(scored).use(),
        ]
    )
    verdict = await run_evaluators(entries, context("x").facts)
    by_name = {result.name: result for result in verdict.evaluator_results}
    assert by_name["half"].success
    assert not by_name["low"].success
    assert verdict.metrics == {"three": 3.0, "yes": 1.0}
    assert by_name["scored"].value == 0.7
    assert verdict.outcome == "fail"
    assert verdict.score == 0.49


async def test_an_inline_evaluator_that_raises_is_an_error_too() -> None:
    def boom(ctx: EvaluatorContext[Any]) -> bool:
        raise ValueError("inline trouble")

    (result,) = await run_entries([define(boom, inline=True).use()], context("x").facts)
    assert result.error is not None
    assert result.error.startswith("ValueError: inline trouble (tests/evaluators/test_running.py:")
    assert result.traceback is not None
    assert 'raise ValueError("inline trouble")' in result.traceback


async def test_a_skip_is_kept_and_neither_holds_nor_fails() -> None:
    def skips(ctx: EvaluatorContext[Any]) -> EvaluationResult:
        return EvaluationResult.skip("not now")

    verdict = await run_evaluators([define(skips).use()], context("x").facts)
    assert (verdict.outcome, verdict.success) == ("unasserted", False)
    assert verdict.reason == "No assertion held or failed"
    assert verdict.evaluator_results[0].skipped
