"""Known secrets disappear from texts and data, however they are written there."""

from __future__ import annotations

import json
import os
from base64 import b64encode, urlsafe_b64encode
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstudio.base.json_text import json_text
from evalstudio.base.redaction import (
    SECRET_HEADER,
    SECRET_SETTING,
    Redaction,
    environment_secrets,
    secrets_sent,
)


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


SECRET = "s3cr/t+k€y=9"
RAW = SECRET.encode()


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        json_text(SECRET)[1:-1],
        json_text(SECRET)[1:-1].replace("/", "\\/"),
        json.dumps(SECRET)[1:-1],
        quote(SECRET),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        quote_plus(SECRET),
        RAW.hex(),
        RAW.hex().upper(),
        b64encode(RAW).decode(),
        urlsafe_b64encode(RAW).decode(),
    ],
)
def test_a_secret_is_known_however_it_is_written(written: str) -> None:
    assert Redaction.of([SECRET])(f"<{written}>") in ("<***>", "<***=>", "<***==>")


@pytest.mark.parametrize("before", range(6))
@pytest.mark.parametrize("after", range(4))
def test_a_secret_is_known_in_the_middle_of_what_was_encoded(before: int, after: int) -> None:
    text = b64encode(b"a" * before + RAW + b"b" * after).decode()
    redacted = Redaction.of([SECRET])(text)
    assert "***" in redacted
    # At the edges a character also holds bits of its neighbours, and may stay.
    assert len(redacted.replace("***", "")) <= len(text) - 4 * len(RAW) // 3 + 3
    assert redacted.index("***") == 4 * (before // 3) + (0, 2, 3)[before % 3]


def test_short_secrets_are_not_looked_for_in_encodings() -> None:
    short = "abcdefg"
    encoded = f"{short.encode().hex()} {b64encode(short.encode()).decode()}"
    assert Redaction.of([short])(encoded) == encoded
    assert Redaction.of([f"{short}h"])(f"{short}h".encode().hex()) == "***"


def test_what_overlapping_secrets_cover_is_taken_out_once() -> None:
    redact = Redaction.of(["abcdef", "defghi", "xyz-1"])
    assert redact("<abcdefghi>") == "<***>"
    assert redact("<abcdef><defghi>") == "<***><***>"
    assert redact("xyz-1xyz-1") == "******"
    assert redact("abcdefabcdefghi") == "******"


def test_a_text_without_secrets_is_the_same_object() -> None:
    text = "nothing in here".upper()
    assert Redaction.of(["secret"])(text) is text
    assert not Redaction.of(["abc"])
    assert Redaction.of(["abcd"])


def test_secrets_are_in_no_description_of_a_redaction() -> None:
    redact = Redaction.of(["abcd-secret"])
    assert repr(redact) == "Redaction()"
    assert redact == Redaction.of(["abcd-secret"]) != Redaction.of(["another-one"])


def test_three_secrets_that_overlap_one_after_the_other_are_one() -> None:
    redact = Redaction.of(["abcd", "cdefgh", "ghij", "klmn"])
    assert redact("abcdefghij klmn") == "*** ***"
    assert redact("klmn abcdefghij") == "*** ***"


def test_a_secret_that_begins_one_character_after_another_is_taken_out_whole() -> None:
    assert Redaction.of(["abcd", "bcdefgh"])("<abcdefgh>") == "<***>"


def test_a_secret_inside_another_does_not_shorten_it() -> None:
    redact = Redaction.of(["first-one", "an-inner-secret", "inner"])
    assert redact("first-one an-inner-secret, an-inner-secret") == "*** ***, ***"


def test_none_is_no_text() -> None:
    assert Redaction.of(["None"]).everywhere([None, "None"]) == [None, "***"]


@pytest.mark.parametrize("secret", ["a b/c d-9876", "~~~???>>>~~~???>>>"])
def test_letters_that_only_some_encodings_replace_are_known(secret: str) -> None:
    raw = secret.encode()
    for written in (
        quote(raw, safe=""),
        quote(raw),
        urlsafe_b64encode(b"xyz" + raw).decode()[4:].rstrip("="),
    ):
        assert Redaction.of([secret])(f"<{written}>") == "<***>", written


def test_of_secrets_that_begin_alike_the_longest_is_taken_out() -> None:
    assert Redaction.of(["zz-key", "zz-key-b", "zz-key-bcd"])("<zz-key-bcd>") == "<***>"


def test_a_secret_that_is_no_valid_text_is_known() -> None:
    secret = "key-\ud800-tail"
    assert Redaction.of([secret])(f"<{secret}>") == "<***>"
    assert Redaction.of([secret])(secret.encode(errors="surrogatepass").hex()) == "***"


def test_the_places_of_secrets_are_told() -> None:
    places: list[Any] = []
    data = {"a": ["x", "secret-1"], "secret-1": {"n": 12345678, "yes": True, "none": None}, "f": (1.5, "y")}
    redacted = Redaction.of(["secret-1", "12345678"]).everywhere(data, (), places)
    assert redacted == {"a": ["x", "***"], "***": {"n": "***", "yes": True, "none": None}, "f": [1.5, "y"]}
    assert places == [("a", 1), (), ("***", "n")]
    assert Redaction.of(["True", "1.55"]).everywhere([True, 1.55, 2]) == [True, "***", 2]


def test_the_environment_gives_its_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    monkeypatch.setenv("MY_API_KEY", " first\n")
    monkeypatch.setenv("TOKENIZER", "harmless")
    monkeypatch.setenv("DATABASE_URL", "postgres://u:p%40ss@host/db")
    monkeypatch.setenv("PLACE", "http://host/x")
    monkeypatch.setenv("BROKEN", "http://[::1")
    assert environment_secrets() - {""} == {"first", "p@ss"}


@pytest.mark.parametrize(
    ("header", "password"),
    [
        (f"Basic {b64encode(b'u:p:q').decode()}", "p:q"),
        (f"bASIC {b64encode(b'u:pw').decode()}", "pw"),
        (f"Bearer {b64encode(b'u:pw').decode()}", None),
        ("Basic ***", None),
        (f"Basic {b64encode(b'alone').decode()}", None),
        (f"Basic {b64encode(b'u:pw').decode()}*", None),
    ],
)
def test_the_password_of_basic_credentials_is_a_secret(header: str, password: str | None) -> None:
    sent = secrets_sent("http://host", {"Authorization": header}) - {header, *header.split(), ""}
    assert sent == ({password} if password else set())
