"""What agents send to keep evaluators busy: each piece of work ends by itself or is ended, off the loop."""

from __future__ import annotations

import asyncio
import json
import math
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstudio.base.killable import Job, KillablePool, WorkKilled, WorkLimits
from evalstudio.base.schemas import UNBOUNDED, schema_cost
from evalstudio.evaluators.apart import is_short, quick_on_short
from evalstudio.evaluators.builtin.regex import first_match
from evalstudio.evaluators.builtin.terms import Automaton, Terms
from evalstudio.evaluators.builtin.text import contains
from evalstudio.evaluators.builtin.tool_matching import Claim, place
from evalstudio.evaluators.contract import TurnFacts
from evalstudio.evaluators.definition import EvaluatorDefinition
from evalstudio.evaluators.limits import EvaluatorLimits
from evalstudio.evaluators.patterns import Pattern
from evalstudio.evaluators.records import RecordFacts
from evalstudio.evaluators.results import Finding
from evalstudio.evaluators.running import run_entries, run_inline
from evalstudio.messages import Message
from evalstudio.plugins import create_registry
from evalstudio.testing import context

# Seconds of work: far above what a free loop is kept waiting, far below what the work would take on it.
LONGEST_GAP = 2.0
SHORT = EvaluatorLimits(evaluator_seconds=1)
MANY = [f"term{number:05}" for number in range(60_000)]


def doubling(levels: int) -> dict[str, Any]:
    """A small schema whose checks double with each level."""
    parts = {
        f"a{level}": {"anyOf": [{"$ref": f"#/$defs/a{level + 1}"}, {"$ref": f"#/$defs/a{level + 1}"}]}
        for level in range(levels)
    }
    return {"not": {"$ref": "#/$defs/a0"}, "$defs": {**parts, f"a{levels}": {"type": "string"}}}


BRANCHES = {
    "type": "array",
    "items": {"oneOf": [{"type": "object", "required": [f"k{number}"]} for number in range(20)]},
}


def evaluator(type_name: str) -> EvaluatorDefinition:
    definition = create_registry().get_evaluator(type_name)
    assert definition is not None
    return definition


@asynccontextmanager
async def loop_watched() -> AsyncIterator[list[float]]:
    """How much this process worked between the steps of a task that wants to run all the time.

    Time in which other processes had the machine is nobody's fault.
    """
    gaps = [0.0]

    async def beat() -> None:
        last = time.process_time()
        while True:
            await asyncio.sleep(0.01)
            now = time.process_time()
            gaps.append(now - last)
            last = now

    task = asyncio.create_task(beat())
    try:
        yield gaps
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def found(
    type_name: str,
    response: str,
    config: dict[str, Any],
    *,
    limits: EvaluatorLimits | None = None,
    **record: Any,
) -> list[Finding]:
    facts = context(response, is_final=True, **record).facts
    facts.limits = limits or EvaluatorLimits()
    entry = evaluator(type_name).use(config)
    async with loop_watched() as gaps:
        findings = await run_entries([entry], facts)
    assert max(gaps) < LONGEST_GAP
    return findings


class TestSchemas:
    async def test_checks_that_double_without_end_are_ended(self) -> None:
        (finding,) = await found("json-schema", "5", {"schema": doubling(41)}, limits=SHORT)
        assert finding.error is not None
        assert "took more than 1 s of processor time" in finding.error
        assert "limits.evaluatorSeconds" in finding.error
        assert finding.fault == "evaluator"
        assert not finding.holds

    def test_so_are_those_where_there_is_no_loop(self) -> None:
        facts = context("5", is_final=True).facts
        facts.limits = SHORT
        entry = evaluator("json-schema").use({"schema": doubling(41)})
        (finding,) = run_inline([entry], facts)
        assert finding.error is not None
        assert "limits.evaluatorSeconds" in finding.error

    async def test_a_long_answer_that_fits_no_branch_fails_at_its_first_item(self) -> None:
        answer = json.dumps([{"x": "y" * 20, "z": number} for number in range(90_000)])
        assert len(answer) > 3_600_000
        (finding,) = await found("json-schema", answer, {"schema": BRANCHES})
        assert finding.failed
        assert finding.reason.startswith("[0]: ")
        assert len(finding.metadata["problems"]) == 1

    async def test_a_tools_arguments_are_bounded_too(self) -> None:
        call = {"id": "1", "function": {"name": "pay", "arguments": "5"}}
        messages = [Message(role="assistant", content="", tool_calls=[call])]  # pyright: ignore
        rule = {"tool": "pay", "required": True, "argumentsSchema": doubling(41)}
        (finding,) = await found("tool-usage", "", {"rules": [rule]}, limits=SHORT, messages=messages)
        assert finding.error is not None
        assert "limits.evaluatorSeconds" in finding.error

    @pytest.mark.parametrize(
        "schema",
        [
            doubling(41),
            {"properties": {"next": {"$ref": "#"}}},
            {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}},
            {"unevaluatedProperties": False},
            {"$ref": "#anchor", "$defs": {"a": {"$anchor": "anchor"}}},
        ],
    )
    def test_what_cannot_be_counted_is_not_taken_for_cheap(self, schema: Any) -> None:
        assert schema_cost(schema) >= UNBOUNDED

    def test_ordinary_schemas_are_cheap(self) -> None:
        shared = {"$ref": "#/$defs/text", "$defs": {"text": {"type": "string"}}, "$id": "https://shop/order"}
        assert schema_cost(shared) < 10
        assert schema_cost(BRANCHES) < 100
        assert schema_cost(True) < 10


class TestTerms:
    @pytest.mark.parametrize(
        ("type_name", "config"),
        [
            ("toxicity", {"toxicTerms": MANY}),
            ("keyword-coverage", {"expectedKeywords": MANY}),
            ("keyword-coverage", {"keywordsSourceField": "groundTruth"}),
            ("rule-based", {"rules": [{"type": "includes", "keywords": MANY}]}),
            ("rule-based", {"rules": [{"type": "keyword_count", "keywords": MANY, "max": 1}]}),
        ],
    )
    async def test_sixty_thousand_are_looked_for_in_one_reading(
        self, type_name: str, config: dict[str, Any]
    ) -> None:
        text = "nothing of it, but term59999 and " * 30_000
        (finding,) = await found(type_name, text, config, ground_truth=MANY)
        assert finding.error is None
        assert not finding.holds

    @pytest.mark.parametrize("whole_word", [True, False])
    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(data=st.data())
    def test_the_automaton_finds_what_looking_one_by_one_finds(
        self, whole_word: bool, data: st.DataObject
    ) -> None:
        letters = st.text("ab _.é가각中\u0301\u1039", min_size=1, max_size=4)
        terms = data.draw(st.lists(letters, min_size=1, max_size=8, unique=True))
        text = data.draw(st.text("ab _.é가각中\u0301\u1039", max_size=40))
        numbers = Automaton(terms).present(text, whole_word)
        present = {term for term in terms if contains(text, term, whole_word=whole_word)}
        assert {terms[number] for number in numbers} == present
        assert Automaton(terms).count(text) == sum(text.count(term) for term in terms)

    def test_terms_inside_each_other_do_not_multiply_the_work(self) -> None:
        terms = ["a" * length for length in range(1, 1_500)]
        assert len(Terms(terms, whole_word=False).present("a" * 200_000)) == len(terms)

    def test_more_than_an_automaton_can_be_made_of_is_refused_when_the_config_is_read(self) -> None:
        with pytest.raises(Exception, match="too many; at most 2,000,000 characters"):
            evaluator("toxicity").use({"toxicTerms": ["x" * 1_000_000, "y" * 1_000_001]})


class TestTools:
    def test_rules_of_one_order_look_at_few_of_many_calls(self) -> None:
        lookups = 0

        class Counted(list[int]):
            def __getitem__(self, key: Any) -> Any:
                nonlocal lookups
                lookups += 1
                return super().__getitem__(key)

            def __iter__(self) -> Any:
                nonlocal lookups
                lookups += len(self)
                return super().__iter__()

        calls = Counted(range(20_000))
        placed, late = place([Claim(rule, calls, order=1) for rule in range(3)])
        assert (len(placed), late) == (3, set())
        assert lookups < 10 * len(calls)

    async def test_twenty_thousand_calls_are_judged(self) -> None:
        call = {"id": "1", "function": {"name": "pay", "arguments": '{"amount": 1}'}}
        messages = [Message(role="assistant", content="", tool_calls=[call] * 20_000)]  # pyright: ignore
        rule = {"tool": "pay", "order": 1, "arguments": {"amount": 1}}
        findings = await found("tool-usage", "", {"rules": [rule] * 3}, messages=messages)
        assert [finding.holds for finding in findings] == [True] * 3


class TestTexts:
    @pytest.mark.parametrize(
        ("type_name", "config"),
        [
            ("lexical-similarity", {}),
            ("sentiment", {}),
            ("response-length", {"unit": "words"}),
            ("regex", {"pattern": "(x+x+)+y"}),
            ("keyword-coverage", {"expectedKeywords": ["é"]}),
        ],
    )
    async def test_a_long_answer_is_read_beside_the_loop(
        self, type_name: str, config: dict[str, Any]
    ) -> None:
        text = "é x中" * 500_000
        (finding,) = await found(type_name, text, config, ground_truth=text[:-1])
        assert finding.error is None or "limits." in finding.error

    async def test_one_that_is_longer_than_the_limit_is_an_error(self) -> None:
        limits = EvaluatorLimits(evaluator_characters=300_000)
        (finding,) = await found("sentiment", "good " * 100_000, {}, limits=limits)
        assert finding.error is not None
        assert "500,000 characters" in finding.error
        assert "limits.evaluatorCharacters" in finding.error

    def test_many_texts_share_the_time_of_a_pattern(self) -> None:
        left: list[float] = []

        def find(_text: str, _seconds: float, remaining: float) -> None:
            left.append(remaining)
            time.sleep(0.01)

        assert first_match(Pattern("a", False, find), ["a"] * 5, 1, hidden=False) is None
        assert left == sorted(left, reverse=True)
        assert left[-1] < 0.97


class TestKilling:
    LIMITS = WorkLimits(60, 100)

    def test_memory_is_limited(self) -> None:
        pool = KillablePool(1)
        with pytest.raises(WorkKilled, match="more than 100 MB"):
            pool.call(Job(bytearray, (400_000_000,), self.LIMITS))
        assert pool.call(Job(math.sqrt, (4.0,), self.LIMITS)) == 2
        pool.close()

    def test_errors_come_back_and_the_process_is_used_again(self) -> None:
        pool = KillablePool(1)
        for _ in range(3):
            with pytest.raises(ValueError, match="domain"):
                pool.call(Job(math.sqrt, (-1.0,), self.LIMITS))
        assert len(pool.pids) == 1
        pool.close()

    async def test_who_stops_waiting_ends_the_work(self) -> None:
        pool = KillablePool(1)
        await pool.run(Job(math.sqrt, (4.0,), self.LIMITS))
        (pid,) = pool.pids
        task = asyncio.create_task(pool.run(Job(time.sleep, (600,), self.LIMITS)))
        waiting = asyncio.create_task(pool.run(Job(time.sleep, (600,), self.LIMITS)))
        await asyncio.sleep(0.1)
        task.cancel()
        waiting.cancel()
        assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)
        async with asyncio.timeout(20):
            while pool.pids:
                await asyncio.sleep(0.02)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert await pool.run(Job(math.sqrt, (9.0,), self.LIMITS)) == 3
        pool.close()


@pytest.mark.parametrize(
    ("kind", "config", "quick"),
    [
        ("lexical-similarity", {"algorithm": "levenshtein"}, True),
        ("regex", {"pattern": "a+"}, True),
        ("lexical-similarity", {"referenceField": "context.reply"}, False),
        ("keyword-coverage", {"keywordsSourceField": "context.words"}, False),
        ("rule-based", {"rules": [{"type": "length", "min": 1}] * 101}, False),
    ],
)
def test_only_what_the_texts_alone_decide_is_estimated_once(
    kind: str, config: dict[str, Any], quick: bool
) -> None:
    definition = create_registry().get_evaluator(kind)
    assert definition is not None
    assert quick_on_short(definition.use(config)) is quick


@pytest.mark.parametrize(
    ("response", "truth", "short"),
    [
        ("a" * 2_000, "b" * 2_000, True),
        ("a", None, True),
        ("a" * 2_001, "b", False),
        ("a", "b" * 2_001, False),
        ("a", {"text": "b"}, False),
    ],
)
def test_a_record_is_short_when_both_texts_are(response: str, truth: Any, short: bool) -> None:
    assert is_short(RecordFacts(TurnFacts(), response, None, truth, {}, {})) is short
    assert not is_short(TurnFacts(given_response=response, ground_truth=truth))
