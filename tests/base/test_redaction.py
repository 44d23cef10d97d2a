"""Known secrets disappear from texts and data, however they are written there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstudio.base.json_text import json_text
from evalstudio.base.redaction import SECRET_HEADER, SECRET_SETTING, Redaction, secrets_sent


def test_longer_secrets_go_before_those_inside_them() -> None:
    redact = Redaction.of(["inner", "an-inner-secret", None, ""])
    assert redact("x an-inner-secret y inner") == "x *** y ***"


def test_short_words_stay_unless_asked_for() -> None:
    assert Redaction.of(["abc", "abcd"])("abc abcd") == "abc ***"
    assert Redaction.of(["abc"], shortest=1)("abc") == "***"
    assert Redaction()("abc") == "abc"


WORDS = st.text(alphabet="abc ", max_size=20)


@given(st.text(alphabet='XYZ"\\/ü\n\x01', min_size=4, max_size=30), WORDS, WORDS)
def test_a_secret_is_gone_from_plain_text_and_from_json(secret: str, before: str, after: str) -> None:
    redact = Redaction.of([secret])
    assert redact(before + secret + after) == f"{before}***{after}"
    assert redact(json_text([before + secret + after])) == json_text([f"{before}***{after}"])


def test_data_is_redacted_in_all_its_texts_and_left_alone_elsewhere() -> None:
    data: dict[str, Any] = {"a": ["x sk-12345", ("sk-12345", 5)], "b": {"c": "sk-12345"}, "n": None, "f": 1.5}
    hidden = Redaction.of(["sk-12345"]).everywhere(data)
    assert hidden == {"a": ["x ***", ["***", 5]], "b": {"c": "***"}, "n": None, "f": 1.5}
    assert data["b"] == {"c": "sk-12345"}


def test_an_address_and_headers_give_their_secrets() -> None:
    secrets = secrets_sent(
        "http://me:p%40ss@host/x?token=tok", {"Authorization": "Bearer k1", "Accept": "text/html"}
    )
    assert secrets >= {"me", "p%40ss", "p@ss", "tok", "Bearer k1", "k1"}
    assert "text/html" not in secrets
    assert secrets_sent("http://[broken", {}) == {"http://[broken"}


@pytest.mark.parametrize(
    "name", ["apiKey", "access_token", "X-Secret", "Set-Cookie", "password", "credentials"]
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert SECRET_SETTING.search(name)
    assert SECRET_HEADER.search(name)


@pytest.mark.parametrize("name", ["tokenizer", "maxTokens", "keyword", "secretary", "path", ""])
def test_settings_that_only_begin_like_one_are_none(name: str) -> None:
    assert not SECRET_SETTING.search(name)
