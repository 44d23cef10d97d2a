"""Answers made to be slow to read: the same calls in two lists, many small parts, blanks without end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstudio.connectors.contract import ConnectorError
from evalstudio.connectors.replies import MOST_PARTS, read_reply
from evalstudio.connectors.stream_reply import StreamPaths, StreamReply
from evalstudio.evaluators.builtin.evidence import ShownTexts, checked_quotes
from evalstudio.evaluators.limits import EvaluatorLimits
from evalstudio.evaluators.running import run_entries
from evalstudio.messages import model, shapes
from evalstudio.messages.parts import Call
from evalstudio.plugins import create_registry
from evalstudio.testing import context


def call(call_id: str, arguments: str = "{}", name: str = "pay") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def naive_take(one: Call, others: list[Call]) -> Call | None:
    """The first of the same name with the same id, or with the same arguments where an id is missing."""
    for other in others:
        names = [part.fields["function"]["name"] for part in (one, other)]
        ids = [part.fields["id"] for part in (one, other)]
        texts = [part.fields["function"]["arguments"] for part in (one, other)]
        if names[0] == names[1] and (ids[0] == ids[1] if all(ids) else texts[0] == texts[1]):
            others.remove(other)
            return other
    return None


CALLS = st.lists(
    st.builds(
        lambda *parts: Call(call(*parts)),
        st.sampled_from(["", "1", "2", "3"]),
        st.sampled_from(["{}", "[]"]),
        st.sampled_from(["pay", "book"]),
    ),
    max_size=8,
)


class TestCalls:
    @settings(max_examples=300, deadline=None, derandomize=True)
    @given(CALLS, CALLS)
    def test_the_same_call_in_two_places_is_found_as_by_comparing_all(
        self, first: list[Call], second: list[Call]
    ) -> None:
        others, left = shapes._Others(first), list(first)  # pyright: ignore[reportPrivateUsage]
        for one in second:
            assert others.take(one) is naive_take(one, left)
        assert list(others.left.values()) == left

    def test_two_lists_of_calls_are_not_compared_each_with_each(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        compared = 0
        text_of_arguments = shapes._arguments_text  # pyright: ignore[reportPrivateUsage]

        def counted(fields: dict[str, Any]) -> str:
            nonlocal compared
            compared += 1
            return text_of_arguments(fields)

        monkeypatch.setattr(shapes, "_arguments_text", counted)
        number = 5_000
        answer = {
            "role": "assistant",
            "content": "paid",
            "tool_calls": [call(f"a{place}") for place in range(number)],
            "toolCalls": [call(f"b{place}") for place in range(number)],
        }
        (message,) = read_reply(answer, 1.0, 1_000).messages
        assert len(message.tool_calls or ()) == 2 * number
        assert compared < 10 * number

    def test_more_parts_than_are_read_are_refused_by_their_number(self) -> None:
        answer = {"role": "assistant", "content": "x", "tool_calls": [call("1")] * (MOST_PARTS + 1)}
        with pytest.raises(ConnectorError, match="25,001 parts and tool calls; the limit is 25,000"):
            read_reply(answer, 1.0, 1_000)

    def test_a_tools_name_may_come_in_many_pieces(self) -> None:
        reply = StreamReply(lambda problem, _: ConnectorError(problem), StreamPaths())
        for _ in range(200_000):
            reply.add_calls([{"index": 0, "function": {"name": "0123456789"}}])
        (message,) = reply.response().messages
        assert len(message["tool_calls"][0]["function"]["name"]) == 2_000_000  # pyright: ignore


class TestTexts:
    def test_parts_are_looked_for_in_the_content_once(self) -> None:
        number = 20_000
        parts = [{"type": "text", "text": f"word{place}"} for place in range(number)]
        content = " ".join(part["text"] for part in parts)
        (message,) = read_reply({"role": "assistant", "content": content, "parts": parts}, 1.0, 9).messages
        assert message.text.count("word") == number
        with pytest.raises(ConnectorError, match="says something else"):
            read_reply({"role": "assistant", "content": content, "parts": parts[::-1]}, 1.0, 9)

    def test_each_different_character_of_a_long_blank_is_looked_at_once(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looked_at = 0

        def category(_: str) -> str:
            nonlocal looked_at
            looked_at += 1
            return "Cf"

        monkeypatch.setattr(model, "category", category)
        assert model.is_blank("\u200b" * 1_000_000)
        assert looked_at < 2_000
        monkeypatch.undo()
        assert not model.is_blank("\u200b" * 5_000 + "x")


class TestJudges:
    @pytest.mark.parametrize(
        ("type_name", "config"),
        [("criteria-judge", {}), ("nlp-accuracy", {}), ("llm-judge", {"successCriteria": "It is done"})],
    )
    async def test_no_model_is_sent_more_than_the_limit(self, type_name: str, config: dict[str, Any]) -> None:
        definition = create_registry().get_evaluator(type_name)
        assert definition is not None
        asked: list[object] = []

        class Model:
            async def answer(self, *asking: object, **_: object) -> object:
                asked.append(asking)
                raise AssertionError

            async def embed(self, *asking: object, **_: object) -> object:
                asked.append(asking)
                raise AssertionError

        criteria = [{"name": "clear", "description": "It is clear", "scale": "binary"}]
        facts = context("x" * 5_000, ground_truth="y", criteria=criteria).facts  # pyright: ignore
        facts.limits = EvaluatorLimits(judge_characters=2_000)
        facts.llm = facts.embedder = Model()  # pyright: ignore
        (finding,) = await run_entries([definition.use(config)], facts)
        assert finding.error is not None
        assert "limits.judgeCharacters" in finding.error
        assert not asked

    def test_a_reply_of_thousands_of_quotes_is_looked_up_in_part(self) -> None:
        quotes = checked_quotes(["yes"] * 100_000, ShownTexts.of(["yes, done"]))
        assert len(quotes) == 50
        assert all(quote["found"] for quote in quotes)
