"""Secrets in definitions: found, sealed, opened, masked and restored, whatever they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st

from evalstudio.base.addresses import origin
from evalstudio.execution.project_files import plan_text
from evalstudio.project.secrets import (
    KEY_VARIABLE,
    MASK,
    InvalidInput,
    SecretBox,
    check_address,
    is_address,
    is_secret,
    masked,
    restored,
    secrets_in,
)

TEXTS = st.text(max_size=50)
BODIES = st.fixed_dictionaries(
    {
        "baseUrl": st.sampled_from(["http://a", "http://b", None]),
        "headers": st.dictionaries(st.sampled_from(["Authorization", "X-Api-Key", "X-Trace"]), TEXTS),
        "config": st.dictionaries(
            st.sampled_from(["apiKey", "path", "nested"]),
            TEXTS | st.dictionaries(st.sampled_from(["token", "x"]), TEXTS | st.lists(TEXTS)),
        ),
    }
)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> SecretBox:
    return SecretBox(tmp_path_factory.mktemp("keys") / "data" / "secret.key")


class TestWhatIsASecret:
    @pytest.mark.parametrize(
        ("header", "value"),
        [
            ("Authorization", "Bearer abc"),
            ("x-api-key", "abc"),
            ("Cookie", "a=b"),
            ("X-Anything", "Bearer abc"),
            ("X-Anything", "Basic dXNlcg=="),
            ("X-Session", "1"),
            ("Authorization", "$HOME"),
            ("Authorization", ""),
        ],
    )
    def test_named_or_written_like_one(self, header: str, value: str) -> None:
        assert is_secret(header, value)

    @pytest.mark.parametrize(
        ("header", "value"),
        [
            ("Authorization", "Bearer ${TOKEN}"),
            ("X-Api-Key", "${KEY}"),
            ("Accept", "text/html"),
            ("X-Trace", "on"),
        ],
    )
    def test_references_and_plain_headers_are_none(self, header: str, value: str) -> None:
        assert not is_secret(header, value)

    def test_settings_are_found_at_any_depth(self) -> None:
        config = {
            "auth": {"apiKey": "a", "items": [{"password": "b"}]},
            "keyword": "c",
            "credentials": ["d", "e"],
        }
        assert {value for _, value in secrets_in({"config": config})} == {"a", "b", "d", "e"}


class TestSealing:
    def test_the_same_secret_is_sealed_as_the_same_text(self, tmp_path: Path) -> None:
        one, other = (SecretBox(tmp_path / "secret.key") for _ in range(2))
        for text in ("s", "", "=", "\x00", "ü" * 10_000):
            assert one.seal_text(text) == other.seal_text(text)
            assert one.open_text(other.seal_text(text)) == text
        assert one.seal_text("a") != one.seal_text("b")

    def test_what_earlier_versions_sealed_still_opens(self, tmp_path: Path) -> None:
        key = Fernet.generate_key()
        (tmp_path / "secret.key").write_bytes(key)
        (tmp_path / "secret.key").chmod(0o600)
        sealed = "sealed:v1:" + Fernet(key).encrypt(b"before").decode()
        assert SecretBox(tmp_path / "secret.key").open_text(sealed) == "before"

    @given(body=BODIES)
    def test_what_is_sealed_opens_to_what_it_was(self, box: SecretBox, body: dict[str, Any]) -> None:
        if any(value == MASK for _, value in secrets_in(body)):
            return
        sealed = box.seal(body)
        assert box.open(sealed) == body
        assert box.seal(sealed) == sealed
        assert masked(sealed) == masked(body)

    @given(body=BODIES)
    def test_the_mask_sent_back_changes_nothing(self, box: SecretBox, body: dict[str, Any]) -> None:
        sealed = box.seal(body)
        assert restored(masked(sealed), sealed) == sealed

    @given(body=BODIES, other=st.sampled_from(["http://c", "https://a", "http://a:81"]))
    def test_at_another_address_no_kept_secret_is_left(
        self, box: SecretBox, body: dict[str, Any], other: str
    ) -> None:
        sealed = box.seal(body)
        moved = restored({**masked(sealed), "baseUrl": other}, sealed)
        kept = {value for _, value in secrets_in(sealed)}
        assert not kept & {value for _, value in secrets_in(moved) if value}

    def test_a_mask_without_anything_kept_is_a_mistake(self) -> None:
        with pytest.raises(InvalidInput, match=r"headers\.Authorization"):
            restored({"headers": {"Authorization": MASK}}, None)


class TestTheKey:
    def test_is_made_once_even_by_many_at_once(self, tmp_path: Path) -> None:
        path = tmp_path / "data" / "secret.key"
        boxes = [SecretBox(path) for _ in range(8)]
        sealed: list[str] = []
        threads = [Thread(target=lambda one=one: sealed.append(one.seal_text("s"))) for one in boxes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {SecretBox(path).open_text(text) for text in sealed} == {"s"}
        assert [file.name for file in path.parent.iterdir()] == ["secret.key"]

    def test_may_come_from_the_environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(KEY_VARIABLE, "A" * 43 + "=")
        box = SecretBox(tmp_path / "secret.key")
        assert box.open_text(box.seal_text("s")) == "s"
        assert not (tmp_path / "secret.key").exists()
        monkeypatch.setenv(KEY_VARIABLE, "nonsense")
        with pytest.raises(InvalidInput, match="no usable key"):
            SecretBox(tmp_path / "secret.key").seal_text("s")

    def test_another_one_opens_nothing(self, tmp_path: Path) -> None:
        sealed = SecretBox(tmp_path / "a.key").seal_text("very secret")
        with pytest.raises(InvalidInput, match="sealed with another key") as error:
            SecretBox(tmp_path / "b.key").open_text(sealed)
        assert "very secret" not in str(error.value)

    def test_is_only_for_its_owner(self, tmp_path: Path) -> None:
        SecretBox(tmp_path / "a.key").seal_text("s")
        assert os.stat(tmp_path / "a.key").st_mode & 0o077 == 0


class TestAddresses:
    @pytest.mark.parametrize(
        ("one", "other", "same"),
        [
            ("http://a/x", "http://A:80/y?z", True),
            ("https://a", "https://a:443", True),
            ("http://a", "https://a", False),
            ("http://a", "http://a:8080", False),
            ("http://a.example", "http://a.example.evil", False),
            ("http://a@evil", "http://a", False),
            ("http://${HOST}/a", "http://${HOST}/b", True),
            (None, "", True),
            ("http://[::1", "http://[::1", True),
        ],
    )
    def test_are_the_same_by_scheme_host_and_port(
        self, one: str | None, other: str | None, same: bool
    ) -> None:
        assert (origin(one) == origin(other)) is same

    @pytest.mark.parametrize("address", ["http://u:p@a", "http://a/?key=x", "http://a/?access_token=x"])
    def test_hold_no_literal_secret(self, address: str) -> None:
        with pytest.raises(InvalidInput, match="literal secret"):
            check_address(address)

    @pytest.mark.parametrize(
        "address", [None, "", "http://a", "http://u:${P}@a", "http://a/?key=${K}", "http://[bad"]
    )
    def test_may_hold_references(self, address: str | None) -> None:
        check_address(address)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("http://a", True),
            ("https://${HOST}:${PORT}/b", True),
            ("${AGENT_URL}/chat", True),
            ("http://[::1]:80", True),
            ("nope", False),
            ("localhost:8000", False),
            ("127.0.0.1:8000/chat", False),
            ("http://", False),
            ("http:///path", False),
            ("://a", False),
            ("http://[bad", False),
        ],
    )
    def test_have_a_scheme_and_a_host(self, text: str, expected: bool) -> None:
        assert is_address(text) is expected


def test_plans_and_definitions_hide_the_same_settings(tmp_path: Path) -> None:
    settings = {
        "apiKey": "sk-plain",
        "credentials": {"provider": "sk-nested"},
        "accessToken": "${TOKEN}",
        "note": "seen",
    }
    plan = {"evaluators": [{"type": "own", "config": settings}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    _, text, is_masked = plan_text(tmp_path, "plan.json")
    config = masked({"config": settings})["config"]
    assert is_masked
    assert config == {**settings, "apiKey": MASK, "credentials": {"provider": MASK}}
    shown = json.loads(json.dumps(config).replace(MASK, "(hidden)"))
    assert json.loads(text)["evaluators"][0]["config"] == shown
