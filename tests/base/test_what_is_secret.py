"""What is taken for a secret, what is not, and what is left of a text that held one."""

from __future__ import annotations

import pytest

from evalstudio.base.addresses import host_of, is_address, origin, shown_address
from evalstudio.base.redaction import SECRET_HEADER, Redaction, secrets_sent
from evalstudio.base.references import UnsetVariable, resolve, values_of


def sent(address: str, headers: dict[str, str]) -> Redaction:
    return Redaction.of(secrets_sent(address, headers))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", " key-123 \n")
    monkeypatch.setenv("AGENT_HOST", "a.example")
    monkeypatch.setenv("BLANK", " ")
    monkeypatch.delenv("MISSING", raising=False)


class TestReferences:
    def test_each_is_replaced_without_the_blanks_around_it(self) -> None:
        assert resolve("https://${AGENT_HOST}/?k=${AGENT_KEY}", "baseUrl") == "https://a.example/?k=key-123"

    def test_text_without_any_is_left_alone(self) -> None:
        assert resolve("$AGENT_KEY {AGENT_KEY} ${", "x") == "$AGENT_KEY {AGENT_KEY} ${"

    @pytest.mark.parametrize("name", ["MISSING", "BLANK", ""])
    def test_one_that_is_not_set_is_named_with_its_field(self, name: str) -> None:
        with pytest.raises(
            UnsetVariable,
            match=rf"baseUrl refers to the environment variable {name}, which is not set. Set {name} and",
        ):
            resolve(f"${{{name}}}", "baseUrl")

    def test_what_they_stand_for(self) -> None:
        assert values_of("${AGENT_KEY} ${AGENT_HOST}", "${BLANK}", "none") == {"key-123", "a.example", ""}
        assert values_of("${MISSING}") == {""}


class TestAddresses:
    @pytest.mark.parametrize(
        ("address", "shown"),
        [
            ("https://u:p@a.example/b@c/d?key=1", "https://a.example/b@c/d"),
            ("https://u@v:p@a.example", "https://a.example"),
            ("https://a.example/x#y?z", "https://a.example/x"),
            ("https://a.example/x?y#z?w#v", "https://a.example/x"),
            ("u:p@a.example/x", "a.example/x"),
            ("https://a.example/http://b", "https://a.example/http://b"),
            ("https://u:p@a.example/http://b", "https://a.example/http://b"),
            ("https://u:p@a.example/http://v:q@b/c", "https://a.example/http://v:q@b/c"),
        ],
    )
    def test_credentials_query_and_fragment_are_left_out(self, address: str, shown: str) -> None:
        assert shown_address(address) == shown
        assert shown_address(address, path=False) == "/".join(shown.split("/")[: 3 if "://" in shown else 1])

    def test_blanks_and_stray_signs_do_not_hide_a_host(self) -> None:
        assert origin(" https://a.example\n") == origin("https://a.example") == "https://a.example:443"
        assert host_of(" LocalHost:1 ") == "localhost"
        assert host_of("[::1]:80]") == "::1"
        assert host_of("a.example~") == "a.example~"
        assert host_of("a.example..") == "a.example"

    def test_a_name_is_no_address(self) -> None:
        assert is_address("localhost") is False
        assert is_address("::1") is True


class TestWhatIsSecret:
    @pytest.mark.parametrize(
        "name",
        [
            "Proxy-Authorization",
            "X-Token",
            "X-SECRET",
            "Api-Key",
            "X-Passwd",
            "X-Passphrase",
            "Set-Cookie",
            "X-Session-Id",
            "X-Credential",
            "X-Hub-Signature",
            "X-JWT-Assertion",
        ],
    )
    def test_a_header_is_known_to_hold_one_by_its_name(self, name: str) -> None:
        assert SECRET_HEADER.search(name)
        assert not SECRET_HEADER.search("Accept-Language")

    def test_credentials_and_query_values_of_the_address(self) -> None:
        redacted = sent("https://user1:pass%2Bword@a.example/path1?key=value-1&other=value-2", {})
        text = "user1 pass%2Bword pass+word value-1 value-2 a.example path1 key other"
        assert redacted(text) == "*** *** *** *** *** a.example path1 key other"

    def test_a_user_name_may_hold_an_at_sign(self) -> None:
        assert sent("https://me@home:pass-word@a.example/", {})("me@home pass-word") == "*** ***"

    def test_an_address_nobody_can_take_apart_is_secret_as_a_whole(self) -> None:
        address = "http://[broken/secret-path"
        assert sent(address, {})(f"to {address}!") == "to ***!"

    def test_headers_and_what_follows_the_scheme_in_them(self) -> None:
        redacted = sent("", {"Authorization": "Bearer tok-1234", "X-Key": "key-5678"})
        assert redacted("Bearer tok-1234, tok-1234, key-5678") == "***, ***, ***"
        assert redacted("Bearer of news") == "Bearer of news"

    @pytest.mark.parametrize(
        "name", ["Accept", "ACCEPT-LANGUAGE", "cache-control", "Content-Type", "User-Agent"]
    )
    def test_headers_that_say_how_to_talk_are_no_secret(self, name: str) -> None:
        assert sent("", {name: "application/json"}).secrets == ()

    def test_what_references_stand_for(self) -> None:
        assert Redaction.of(["key-123"])("a key-123 b") == "a *** b"

    def test_a_secret_as_json_writes_it(self) -> None:
        assert sent("", {"X-Key": 'a"b\\c'})('{"k": "a\\"b\\\\c"}') == '{"k": "***"}'

    def test_four_characters_are_a_secret_and_three_are_not(self) -> None:
        redacted = sent("", {"X-A": "abcd", "X-B": "xyz"})
        assert redacted("abcd xyz") == "*** xyz"

    def test_the_longest_comes_first(self) -> None:
        redacted = sent("", {"X-A": "abcd", "X-B": "abcd-efgh", "X-C": "abcd-efgh-ijkl"})
        assert redacted.secrets == ("abcd-efgh-ijkl", "abcd-efgh", "abcd")
        assert redacted("abcd-efgh-ijkl abcd-efgh abcd") == "*** *** ***"

    def test_every_occurrence_goes(self) -> None:
        assert Redaction(("abcd",))("abcdabcd abcd") == "****** ***"

    def test_without_secrets_nothing_changes(self) -> None:
        assert Redaction()("anything") == "anything"
