"""Values on their way out: bounded, without secrets, and such that the encoder takes them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from evalstudio.base.redaction import Redaction
from evalstudio.messages import Message
from evalstudio.telemetry.attributes import Cleaner, capture_asked_for
from evalstudio.telemetry.trace_context import SpanIds, execution_ids, ids_in, read_ids

CLEAN = Cleaner(Redaction.of(["hunter2-hunter2"]))
ANYTHING = st.one_of(
    st.text(st.characters(codec=None), max_size=50), st.integers(), st.floats(), st.none(), st.booleans()
)


@given(ANYTHING)
def test_whatever_is_sent_can_be_encoded(value: object) -> None:
    cleaned = CLEAN({"name": value}).get("name")
    if isinstance(cleaned, str):
        AnyValue(string_value=cleaned).SerializeToString()
    elif isinstance(cleaned, int) and not isinstance(cleaned, bool):
        AnyValue(int_value=cleaned).SerializeToString()
    elif isinstance(cleaned, float):
        assert math.isfinite(cleaned)


def test_a_secret_is_taken_out_before_a_text_is_cut() -> None:
    text = CLEAN.text("x" * 1_995 + "hunter2-hunter2" + "y" * 100)
    assert len(text) == 2_000
    assert "hunter" not in text
    assert CLEAN({"a": "", "b": None, "c": 2**70, "d": math.nan, "e": [1]}) == {}


def test_of_very_long_conversations_the_oldest_messages_are_left_out() -> None:
    messages = [Message(role="user", content=f"{number}" * 15_000) for number in range(10)]
    told = CLEAN.messages(messages)
    assert len(told) < 110_000
    assert '"content":"9999' in told
    assert '"content":"0000' not in told
    assert CLEAN.messages([]) == "[]"


GOOD = f"00-{'ab' * 16}-{'cd' * 8}-01"


@pytest.mark.parametrize(
    "text",
    [
        "",
        None,
        7,
        GOOD.upper(),
        GOOD[:-1],
        GOOD + "x",
        GOOD + " x",
        "ff" + GOOD[2:],
        f"00-{'0' * 32}-{'cd' * 8}-01",
        f"00-{'ab' * 16}-{'0' * 16}-01",
        f"00-{'٣' * 32}-{'cd' * 8}-01",
        GOOD + "-" + "x" * 10_000,
    ],
)
def test_what_is_no_traceparent_names_no_span(text: object) -> None:
    assert read_ids(text) is None


def test_a_traceparent_is_read_as_it_is_written() -> None:
    ids = read_ids(GOOD)
    assert ids == SpanIds(int("ab" * 16, 16), int("cd" * 8, 16), True)
    assert ids is not None
    assert ids.header() == GOOD
    assert ids_in({"traceresponse": "nonsense", "traceparent": GOOD}) == ids
    assert read_ids("01" + GOOD[2:] + "-later-fields") == ids


def test_every_process_comes_to_the_same_span_of_an_execution() -> None:
    assert execution_ids("exe-1") == execution_ids("exe-1") != execution_ids("exe-2")
    assert execution_ids("\ud800").trace_id


@pytest.mark.parametrize(
    ("word", "spans", "events"),
    [
        ("", False, False),
        ("NO_CONTENT", False, False),
        ("false", False, False),
        ("span_only", True, False),
        ("true", True, False),
        ("EVENT_ONLY", False, True),
        ("SPAN_AND_EVENT", True, True),
        ("everything", False, False),
    ],
)
def test_where_texts_go_is_said_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, word: str, spans: bool, events: bool
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", word)
    capture = capture_asked_for()
    assert (capture.on_spans, capture.in_events) == (spans, events)
    assert bool(capture.problem) == (word == "everything")
