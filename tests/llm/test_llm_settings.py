"""``llmSettings``, its secrets, and which provider a model's name means."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from evalstudio.llm import LlmSettings, ModelError, resolve_secret
from evalstudio.llm.settings import find_access, find_target

KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def _no_keys_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "MY_KEY"):
        monkeypatch.delenv(name, raising=False)


def settings(**fields: object) -> LlmSettings:
    return LlmSettings.model_validate(fields)


def test_the_defaults_are_usable() -> None:
    plain = settings()
    assert (plain.provider, plain.timeout_seconds, plain.max_retries) == ("openai", 60, 4)
    assert (plain.concurrency.evaluation, plain.concurrency.persona) == (8, 8)
    assert plain.temperature.evaluation == 0
    assert plain.models.embedding == "wordllama"


def test_json_is_camel_case() -> None:
    read = settings(
        baseUrl="http://127.0.0.1:1/v1/", timeoutSeconds=5, maxRetries=0, models={"evaluation": "m"}
    )
    assert read.base_url == "http://127.0.0.1:1/v1"
    assert "timeoutSeconds" in read.model_dump(by_alias=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"provder": "openai"},
        {"provider": ""},
        {"baseUrl": "localhost:80"},
        {"baseUrl": "file:///etc/passwd"},
        {"timeoutSeconds": 0},
        {"timeoutSeconds": float("inf")},
        {"timeoutSeconds": float("nan")},
        {"maxRetries": -1},
        {"concurrency": {"evaluation": 0}},
        {"temperature": {"evaluation": 3}},
        {"structured": "magic"},
        {"models": {"judge": "m"}},
        {"models": {"evaluation": ""}},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        settings(**wrong)


def test_the_key_is_in_no_representation() -> None:
    read = settings(apiKey=KEY, providers={"anthropic": {"apiKey": KEY}})
    for shown in (repr(read), str(read), read.model_dump_json(), repr(find_access(read, "openai"))):
        assert KEY not in shown


def test_the_key_is_in_no_validation_message() -> None:
    with pytest.raises(ValidationError) as caught:
        settings(apiKey=[KEY], provider={"k": KEY})
    assert KEY not in str(caught.value)


def test_a_reference_is_resolved_when_used(monkeypatch: pytest.MonkeyPatch) -> None:
    read = settings(apiKey="${MY_KEY}")
    with pytest.raises(ModelError, match=r"llmSettings\.apiKey refers to the environment variable MY_KEY"):
        find_access(read, "openai")
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")
    assert find_access(read, "openai").api_key == KEY


@pytest.mark.parametrize("value", ["", "  ", "two words", "sk-\u017c\u00f3\u0142w", "sk-\x00"])
def test_what_cannot_be_a_key_is_refused_without_being_shown(value: str) -> None:
    with pytest.raises(ModelError, match="copy the key again") as caught:
        resolve_secret(value)
    assert not value.strip() or value not in str(caught.value)


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "  ")
    with pytest.raises(ModelError, match="not set"):
        resolve_secret("${MY_KEY}")


def test_the_usual_variable_is_used_where_no_key_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match=r"no key for openai: set llmSettings.apiKey or .* OPENAI_API_KEY"):
        find_access(settings(), "openai")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert find_access(settings(), "openai").api_key == KEY
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    assert find_access(settings(), "google").api_key == KEY


def test_a_key_never_goes_to_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    elsewhere = settings(baseUrl="http://127.0.0.1:9/v1")
    assert find_access(elsewhere, "openai").secret is None
    own = settings(provider="openai", apiKey=KEY)
    assert find_access(own, "ollama").secret is None
    with pytest.raises(ModelError, match="no key for anthropic"):
        find_access(own, "anthropic")


def test_further_providers_have_their_own_access() -> None:
    read = settings(apiKey="a", providers={"anthropic": {"apiKey": "b", "baseUrl": "http://127.0.0.1:9"}})
    assert find_access(read, "anthropic").api_key == "b"
    with pytest.raises(ModelError, match=r"set llmSettings.providers.vllm.baseUrl|set llmSettings.baseUrl"):
        find_access(read, "vllm")


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("gpt-4o", "ollama", "gpt-4o"),
        ("llama3:8b", "ollama", "llama3:8b"),
        ("ollama:llama3:8b", "ollama", "llama3:8b"),
        ("openai:gpt-4o", "openai", "gpt-4o"),
        ("anthropic:claude-opus-5", "anthropic", "claude-opus-5"),
        ("openai:", "ollama", "openai:"),
        ("mine:model", "mine", "model"),
        ("other:model", "ollama", "other:model"),
        ("vendor/model:free", "ollama", "vendor/model:free"),
    ],
)
def test_a_known_provider_before_a_colon_is_meant(name: str, provider: str, model: str) -> None:
    read = settings(provider="ollama", providers={"mine": {"baseUrl": "http://127.0.0.1:9"}})
    target = find_target(read, name, "evaluation")
    assert (target.provider, target.model) == (provider, model)


def test_a_role_without_a_model_says_which_setting_is_missing() -> None:
    with pytest.raises(ModelError, match=r"set llmSettings\.models\.persona"):
        find_target(settings(), None, "persona")


def test_places_show_no_credentials_of_an_address() -> None:
    read = settings(baseUrl="http://user:pass@127.0.0.1:9/v1?key=abc")
    assert find_target(read, "m", "evaluation").place == "openai at http://127.0.0.1:9"
