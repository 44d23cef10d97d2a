"""Values nobody would send, for as long as there is time, and a watch over the loop that has to bear them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import orjson
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.support import generating as generating

LONGEST_GAP = 2.0
_PER_ROUND = 25


class Budget:
    """Seconds to spend, and what was done in them."""

    def __init__(self, seconds: float) -> None:
        self.examples = 0
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> bool:
        return time.monotonic() < self._end

    def run(self, strategy: st.SearchStrategy[Any], check: Callable[[Any], None], number: int) -> None:
        """One round of examples. Each number makes others, and the same number the same."""

        def counted(example: Any) -> None:
            if self.left:
                self.examples += 1
                check(example)

        limits = settings(
            max_examples=_PER_ROUND,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]
        )
        seed(number)(limits(given(strategy)(counted)))()


async def longest_gap(work: Any) -> tuple[Any, float]:
    """What some work returns, and the longest time for which it kept the loop."""
    longest, last, done = 0.0, time.perf_counter(), False

    async def beat() -> None:
        nonlocal longest, last
        while not done:
            await asyncio.sleep(0.01)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    watch = asyncio.create_task(beat())
    try:
        returned = await work
    finally:
        done = True
        await watch
    return returned, longest


WORDS = st.sampled_from(
    [
        "",
        " ",
        "a",
        "ß",
        "İ",
        "é",
        "e\u0301",
        "\u200b",
        "\ud800",
        "中",
        "가",
        "x\x00",
        "NaN",
        "-0",
        "```json\n",
        "{",
        "[",
        '"',
        "\\",
    ]
)
SHORT = st.one_of(st.text(max_size=30), st.lists(WORDS, max_size=20).map("".join))
LONG = st.builds(lambda word, times: word * times, WORDS, st.sampled_from([1_000, 30_000, 300_000]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | SHORT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(SHORT, inner, max_size=5),
    max_leaves=20,
)
KEYS = st.sampled_from(
    [
        *(
            "role",
            "content",
            "parts",
            "type",
            "text",
            "tool_calls",
            "toolCalls",
            "function",
            "name",
            "arguments",
        ),
        *(
            "id",
            "tool_call_id",
            "args",
            "input",
            "output",
            "result",
            "toolName",
            "functionCall",
            "kwargs",
            "data",
        ),
        *(
            "choices",
            "delta",
            "index",
            "message",
            "messages",
            "candidates",
            "done",
            "response",
            "usage",
            "error",
        ),
        *(
            "success",
            "threadId",
            "metadata",
            "additional_kwargs",
            "finish_reason",
            "total_tokens",
            "content_block",
        ),
    ]
)
KINDS = st.sampled_from(
    [
        *(
            "assistant",
            "user",
            "tool",
            "ai",
            "human",
            "text",
            "tool_use",
            "tool_result",
            "function",
            "constructor",
        ),
        *("reasoning", "tool-x", "message_start", "content_block_start", "text-delta", "response.completed"),
    ]
)
MESSAGES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | KINDS | SHORT,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=30,
)


def json_of(value: Any) -> str:
    """A value as agents would send it."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError):
        return repr(value)


TEXTS = st.one_of(SHORT, LONG, JSON.map(json_of), JSON.map(lambda value: f"```json\n{json_of(value)}\n```"))
