"""Messages become turns: who said what after whom, how long it took and what it used."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from evalstudio.messages import Message, TokensUsage, text_of
from evalstudio.recordings.conversation import ConversationBuilder, RecordedConversation

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def message(role: str, text: str) -> Message:
    return Message.model_validate({"role": role, "content": text})


def built(*said: tuple[str, str]) -> ConversationBuilder:
    builder = ConversationBuilder()
    for role, text in said:
        builder.add(message(role, text))
    return builder


def test_each_message_of_the_user_opens_a_turn() -> None:
    builder = built(("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"), ("assistant", "e"))
    spoken = [[text_of(one) for one in turn.all_messages] for turn in builder.turns]
    assert spoken == [["a", "b"], ["c", "d", "e"]]
    assert [turn.number for turn in builder.turns] == [1, 2]


def test_what_comes_before_the_user_is_no_turn() -> None:
    builder = built(("system", "be kind"), ("assistant", "hello"), ("user", "a"), ("assistant", "b"))
    assert [text_of(one) for one in builder.seeds] == ["be kind", "hello"]
    assert len(builder.turns) == 1


def test_messages_of_the_user_that_follow_each_other_are_one_turn() -> None:
    builder = built(("user", "a"), ("user", "b"), ("assistant", "c"))
    assert [[text_of(one) for one in turn.all_messages] for turn in builder.turns] == [["a", "b", "c"]]


def test_a_last_message_without_an_answer_is_known() -> None:
    builder = built(("user", "a"), ("assistant", "b"), ("user", "c"))
    assert not RecordedConversation("1", builder.turns).is_answered
    assert not RecordedConversation("1", []).is_answered
    builder.add(message("assistant", "d"))
    assert RecordedConversation("1", builder.turns).is_answered


def test_times_give_latency_and_usage_adds_up() -> None:
    builder = ConversationBuilder()
    builder.add(message("user", "a"), at=NOON)
    for seconds in (1, 3):
        usage = TokensUsage(input_tokens=2, output_tokens=1, total_tokens=3)
        builder.add(message("assistant", "b"), at=NOON + timedelta(seconds=seconds), usage=usage)
    assert builder.turns[0].latency_ms == 3000
    assert builder.turns[0].tokens_usage == TokensUsage(input_tokens=4, output_tokens=2, total_tokens=6)


def test_a_clock_that_went_back_gives_no_latency() -> None:
    builder = ConversationBuilder()
    builder.add(message("user", "a"), at=NOON)
    builder.add(message("assistant", "b"), at=NOON - timedelta(seconds=1))
    assert builder.turns[0].latency_ms is None
