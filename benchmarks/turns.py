"""The engine's cost per evaluated turn, beside the same checks in a plain loop."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import jsonschema_rs
import re2

from evalstudio.evaluators.aggregate import conclude
from evalstudio.evaluators.contract import Invocation, TurnFacts
from evalstudio.evaluators.definition import Entry, with_keys
from evalstudio.evaluators.running import run_turn
from evalstudio.messages import Message
from evalstudio.plugins import create_registry

from .measuring import BenchmarkLine, interleaved

REPLY = json.dumps({"reference": "BK-12345", "note": "Your table for two is booked at eight. " * 12})
GOLD = "Your table for two is booked at eight. " * 12 + "The reference is BK-12345."
SCHEMA = {"type": "object", "required": ["reference"], "properties": {"reference": {"type": "string"}}}
KEYWORDS = ["table", "booked", "eight", "reference"]
TURNS = 2000


def measure() -> BenchmarkLine:
    registry = create_registry()

    def use(kind: str, **config: object) -> Entry:
        definition = registry.get_evaluator(kind)
        assert definition is not None
        return definition.use(config)

    entries = with_keys(
        [
            use("regex", pattern=r"BK-\d{5}"),
            use("keyword-coverage", expectedKeywords=KEYWORDS),
            use("lexical-similarity"),
            use("json-schema", schema=SCHEMA),
        ]
    )

    async def engine() -> None:
        for _ in range(TURNS):
            answer = Message.model_construct(role="assistant", content=REPLY)
            facts = TurnFacts(
                messages=[answer], last_invocation=Invocation(1.0, [answer]), ground_truth=GOLD, is_final=True
            )
            results = await run_turn(entries, facts)
            verdict = conclude(entries, [results])
            assert verdict.success, verdict.reason

    ours, floor = interleaved(lambda: asyncio.run(engine()), _plain)
    per_turn, per_plain = ours / TURNS * 1e6, floor / TURNS * 1e6
    return BenchmarkLine(
        "engine per evaluated turn, four checks",
        f"{per_turn:.1f} µs",
        f"{per_plain:.1f} µs plain loop",
        f"≤ 3 × plain + 20 µs = {3 * per_plain + 20:.1f} µs",
        per_turn <= 3 * per_plain + 20,
    )


def _plain() -> None:
    pattern = re2.compile(r"BK-\d{5}")
    words = [re2.compile(rf"(?i)\b{word}\b") for word in KEYWORDS]
    validator = jsonschema_rs.validator_for(SCHEMA)
    for _ in range(TURNS):
        held = [
            bool(pattern.search(REPLY)),
            sum(1 for word in words if word.search(REPLY)) / len(words) >= 0.5,
            _dice(REPLY, GOLD) >= 0.5,
            validator.is_valid(json.loads(REPLY)),
        ]
        assert all(held)


def _dice(one: str, other: str) -> float:
    one, other = " ".join(one.lower().split()), " ".join(other.lower().split())
    first = Counter(one[i : i + 2] for i in range(len(one) - 1))
    second = Counter(other[i : i + 2] for i in range(len(other) - 1))
    return 2 * sum((first & second).values()) / (len(one) + len(other) - 2)
