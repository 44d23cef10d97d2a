"""Every reader of what agents and judges send, with what they never should."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import strategies as st
from tests.support.fuzzing import LONGEST_GAP, MESSAGES, SHORT, TEXTS, Budget, json_of, longest_gap

from evalstudio.base.json_text import json_text, strict_json
from evalstudio.connectors.contract import ConnectorError
from evalstudio.connectors.replies import read_reply
from evalstudio.connectors.stream_events import EventReader, data_stream_part
from evalstudio.connectors.stream_reply import StreamPaths, StreamReply
from evalstudio.evaluators.builtin.evidence import ShownTexts, checked_quotes, planted
from evalstudio.evaluators.builtin.json_schema import NotJson, find_json
from evalstudio.evaluators.builtin.prompts import transcript
from evalstudio.messages import read_answer, read_usage


def reply(answer: Any) -> None:
    with suppress(ConnectorError):
        messages = read_reply(answer, 1.0, 1_000).messages
        transcript(messages)
        json_text([message.to_json() for message in messages])


def answer(value: Any) -> None:
    # What cannot be read is a ValueError that says why.
    with suppress(ValueError):
        read_answer(value)


def stream(events: Iterable[tuple[str, Any]]) -> None:
    stream_reply = StreamReply(lambda problem, _: ConnectorError(problem), StreamPaths())
    reader = EventReader(stream_reply)
    with suppress(ConnectorError):
        for name, event in events:
            reader.event(name, event if isinstance(event, str) else json_of(event))
            data_stream_part(stream_reply, "9", event)
        stream_reply.finish()
        read_reply(stream_reply.response(), 1.0, 1_000)


def judgement(texts: list[str]) -> None:
    said = ShownTexts.of(texts)
    checked_quotes(texts, said)
    planted("score", 5, texts[0], said)
    for text in texts:
        with suppress(NotJson):
            find_json(text)
        with suppress(ValueError):
            strict_json(text)


READERS: list[tuple[Callable[[Any], object], st.SearchStrategy[Any]]] = [
    (reply, MESSAGES),
    (answer, MESSAGES),
    (stream, st.lists(st.tuples(SHORT, MESSAGES | SHORT), max_size=8)),
    (judgement, st.lists(TEXTS, min_size=1, max_size=4)),
    (read_usage, MESSAGES),
]


@pytest.mark.soak
def test_no_answer_breaks_a_reader_or_keeps_the_loop(budget: Callable[[str], Budget]) -> None:
    spent, number = budget("readers"), 0
    while spent.left:
        number += 1
        for read, strategy in READERS:

            async def work(value: Any, read: Callable[[Any], object] = read) -> None:
                read(value)

            def check(value: Any, work: Callable[[Any], Any] = work) -> None:
                _, gap = asyncio.run(longest_gap(work(value)))
                assert gap < LONGEST_GAP

            spent.run(strategy, check, number)
    print(f"\n{spent.examples} examples over {len(READERS)} readers")
    assert spent.examples > len(READERS)
