"""Every built-in evaluator with configs and answers that nobody would think of."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st
from tests.support.fuzzing import JSON, LONGEST_GAP, MESSAGES, SHORT, TEXTS, Budget, longest_gap
from tests.support.memory import peak_megabytes

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.contract import Answer, Invocation
from evalstudio.evaluators.definition import EvaluatorDefinition
from evalstudio.evaluators.limits import EvaluatorLimits
from evalstudio.evaluators.running import run_entries
from evalstudio.messages import TokensUsage, read_answer
from evalstudio.plugins import create_registry
from evalstudio.testing import context

LIMITS = EvaluatorLimits(evaluator_seconds=2, pattern_seconds=0.5)
# An error of the interpreter's, not one that was foreseen and put into words.
UNFORESEEN = re.compile(
    r"\w*(?:TypeError|KeyError|IndexError|AttributeError|RecursionError|UnicodeEncodeError)\b"
)
REGISTRY = create_registry()
TYPES = [one["type"] for one in REGISTRY.list_evaluator_types()]
EVALUATORS = [one for name in TYPES if (one := REGISTRY.get_evaluator(name)) is not None]


class AnyModel:
    """A model that answers whatever was drawn."""

    def __init__(self, reply: Any) -> None:
        self._reply = reply

    async def answer(self, _messages: Any, schema: Any, **_: Any) -> Answer[Any]:
        return Answer(schema.model_validate(self._reply), TokensUsage())

    async def embed(self, _texts: Any, **_: Any) -> Any:
        return self._reply


def written(definition: EvaluatorDefinition) -> st.SearchStrategy[Any]:
    """Configs that keep to the schema, configs that nearly do, and ones made for this evaluator."""
    from hypothesis_jsonschema import from_schema

    schema = definition.config.schema
    names = st.sampled_from(sorted(schema.get("properties") or ["x"]))
    nearly = st.dictionaries(names, JSON | SHORT, max_size=4)
    own: dict[str, st.SearchStrategy[dict[str, Any]]] = {
        "json-schema": st.fixed_dictionaries({"schema": SCHEMAS}),
        "regex": st.fixed_dictionaries({"pattern": PATTERNS, "flags": st.sampled_from(["", "i", "ms"])}),
        "keyword-coverage": st.fixed_dictionaries({"expectedKeywords": st.lists(SHORT, max_size=40)}),
        "toxicity": st.fixed_dictionaries({"toxicTerms": st.lists(SHORT, max_size=40)}),
        "llm-judge": st.just({"successCriteria": "It is done"}),
        "tool-usage": st.fixed_dictionaries({"rules": st.lists(RULES, max_size=4)}),
    }
    return st.one_of(from_schema(schema), nearly, own.get(definition.type, st.just({})))


KEYWORDS = st.sampled_from(
    ["anyOf", "oneOf", "allOf", "not", "items", "properties", "$ref", "$defs", "type", "enum"]
)
SCHEMAS = st.recursive(
    st.booleans() | st.sampled_from(["#", "#/$defs/a", "string", "array"]),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(KEYWORDS | st.just("a"), inner, max_size=4)
        | st.builds(lambda word: {"type": "string", "pattern": word}, st.deferred(lambda: PATTERNS))
    ),
    max_leaves=15,
)
PATTERNS = st.lists(
    st.sampled_from([*"ab.*+?()[]{}|^$\\1", "(?=", "(?<!", "(a+)+", "{2,9}", r"\b", r"\pL", "[^a]"]),
    max_size=12,
).map("".join)
RULES = st.fixed_dictionaries(
    {"tool": st.sampled_from(["pay", "book"])},
    optional={
        "order": st.integers(0, 3),
        "minCalls": st.integers(0, 5),
        "required": st.booleans(),
        "arguments": st.dictionaries(SHORT, JSON, max_size=2),
        "argumentsSchema": SCHEMAS,
        "which": st.sampled_from(["any", "all", "first", "last"]),
    },
)
CALLS = st.lists(
    st.builds(
        lambda name, arguments: {"id": "", "function": {"name": name, "arguments": arguments}},
        st.sampled_from(["pay", "book"]),
        JSON | SHORT,
    ),
    max_size=12,
)
RECORDS = st.fixed_dictionaries(
    {
        "response": TEXTS,
        "ground_truth": TEXTS | JSON,
        "calls": CALLS,
        "answer": MESSAGES,
        "reply": JSON,
        "state": JSON,
    }
)


def check(definition: EvaluatorDefinition, example: tuple[dict[str, Any], dict[str, Any]]) -> None:
    config, record = example
    try:
        entry = definition.use(config)
    except InvalidInput:
        return
    facts = context(record["response"], ground_truth=record["ground_truth"], is_final=True).facts
    facts.messages = [*facts.messages, *_messages(record["answer"])]
    calling = {"role": "assistant", "content": record["response"], "tool_calls": record["calls"]}
    facts.last_invocation = Invocation(1.0, _messages(calling))
    facts.messages += facts.last_invocation.messages
    facts.state = record["state"] if isinstance(record["state"], dict) else None
    facts.limits = LIMITS
    facts.llm = facts.embedder = AnyModel(record["reply"])  # pyright: ignore
    findings, gap = asyncio.run(longest_gap(run_entries([entry], facts)))
    assert gap < LONGEST_GAP, f"{definition.type} kept the loop for {gap:.1f} s"
    for finding in findings:
        assert finding.error is None or not UNFORESEEN.match(finding.error), finding.error
        assert finding.error is None or not finding.holds


def _messages(answer: Any) -> list[Any]:
    try:
        return read_answer(answer) or []
    except ValueError:
        return []


@pytest.mark.soak
def test_no_config_and_no_answer_breaks_an_evaluator_or_keeps_the_loop(
    budget: Callable[[str], Budget],
) -> None:
    spent, number, before = budget("evaluators"), 0, peak_megabytes()
    while spent.left:
        number += 1
        for definition in EVALUATORS:
            spent.run(st.tuples(written(definition), RECORDS), partial(check, definition), number)
    print(f"\n{spent.examples} examples over {len(EVALUATORS)} evaluators, {peak_megabytes()} MB")
    assert spent.examples > len(EVALUATORS)
    assert peak_megabytes() < before + 512
