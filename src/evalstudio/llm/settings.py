"""``llmSettings`` of the config file: which models, where, with whose key and how hard to try.

Secrets stay references or masked values here; they are resolved when a connection is made.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, SecretStr
from pydantic.alias_generators import to_camel

from ..base.addresses import shown_address
from ..base.lazy_dataclass import dataclass
from ..base.references import REFERENCE, UnsetVariable, resolve
from ..base.strict_values import StrictValues


class ModelError(Exception):
    """A model gave no usable answer. ``raw`` is its reply where there was one, ``status`` the HTTP status."""

    def __init__(self, message: str, *, raw: str | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.raw = raw
        self.status = status


Role = Literal["evaluation", "persona", "embedding"]
Structured = Literal["native", "tool"]

_PRINTABLE = re.compile(r"[!-~]+")


def _address(value: str) -> str:
    url = value.strip().rstrip("/")
    if not REFERENCE.search(url) and not _is_address(url):
        raise ValueError('must be an address such as "http://127.0.0.1:11434/v1"')
    return url


def _is_address(url: str) -> bool:
    try:
        _ = urlsplit(url).port
    except ValueError:
        return False
    return re.match(r"https?://[^/\s]+", url) is not None


Address = Annotated[str, AfterValidator(_address)]


class _Settings(StrictValues):
    # Inputs are kept out of validation messages: one of them may be a key.
    model_config = ConfigDict(
        defer_build=True,
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        hide_input_in_errors=True,
    )


class ProviderAccess(_Settings):
    """How to reach one provider."""

    api_key: SecretStr | None = Field(None, description="The key, or a reference such as ${OPENAI_API_KEY}")
    base_url: Address | None = Field(None, description="Address of the API; the provider's own by default")


class ModelNames(_Settings):
    """One model per role, as ``model`` or ``provider:model``."""

    evaluation: str | None = Field(None, min_length=1, description="Judges conversations")
    persona: str | None = Field(None, min_length=1, description="Plays the user")
    embedding: str = Field("wordllama", min_length=1, description="Compares texts; wordllama runs locally")


class Concurrency(_Settings):
    """The most calls at once, per role. Rate limits lower it for a while."""

    evaluation: int = Field(8, ge=1, le=1000)
    persona: int = Field(8, ge=1, le=1000)
    embedding: int = Field(4, ge=1, le=1000)


class Temperatures(_Settings):
    """Sampling temperature per role; ``null`` leaves it to the provider."""

    evaluation: float | None = Field(0.0, ge=0, le=2)
    persona: float | None = Field(None, ge=0, le=2)


class LlmSettings(ProviderAccess):
    """Everything about model providers."""

    provider: str = Field(
        "openai",
        min_length=1,
        description="openai, anthropic, google, or any name for an OpenAI-compatible server",
    )
    models: ModelNames = Field(default_factory=lambda: ModelNames.model_validate({}))
    providers: dict[str, ProviderAccess] = Field(
        default_factory=dict[str, ProviderAccess],
        description="Access to further providers, used by models named provider:model",
    )
    structured: Structured = Field("native", description="How structured answers are asked for")
    timeout_seconds: float = Field(60.0, gt=0, le=3600, description="Longest wait for one reply")
    total_timeout_seconds: float = Field(300.0, gt=0, le=86400, description="Longest wait with all retries")
    max_retries: int = Field(4, ge=0, le=20)
    max_response_bytes: int = Field(8_000_000, ge=1000)
    max_tokens: int | None = Field(None, ge=1, description="Longest reply in tokens")
    requests_per_minute: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="The most calls of one model with one key in a minute, evenly spaced",
    )
    concurrency: Concurrency = Field(default_factory=lambda: Concurrency.model_validate({}))
    temperature: Temperatures = Field(default_factory=lambda: Temperatures.model_validate({}))
    seed: int | None = None

    def access(self, provider: str) -> ProviderAccess:
        """Where and with whose key to reach a provider: a key never goes to another one's address."""
        if provider in self.providers:
            return self.providers[provider]
        return self if provider == self.provider else ProviderAccess.model_validate({})


def _resolved(text: str, field: str) -> str:
    try:
        return resolve(text, field).strip()
    except UnsetVariable as error:
        raise ModelError(str(error)) from None


def _resolved_address(text: str, field: str) -> str:
    try:
        return _address(_resolved(text, field))
    except ValueError as error:
        raise ModelError(f"{field} {error}") from None


def resolve_secret(secret: SecretStr | str, field: str = "llmSettings.apiKey") -> str:
    """The secret itself, fit to be sent in a header."""
    value = _resolved(secret.get_secret_value() if isinstance(secret, SecretStr) else secret, field)
    if not _PRINTABLE.fullmatch(value):
        raise ModelError(f"{field} is empty or has characters that no key has; copy the key again.")
    return value


_ADDRESSES = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "ollama": "http://127.0.0.1:11434/v1",
}
KEY_VARIABLES = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
}
# Servers on one's own machine ask for no key, but the protocol's libraries insist on one.
_NO_KEY = "none"


@dataclass(frozen=True, slots=True)
class Target:
    """One model of one provider, and how to speak of them in messages."""

    provider: str
    model: str
    place: str
    own: bool = True

    def setting(self, name: str) -> str:
        """The setting a person would change: ``llmSettings.apiKey``."""
        return setting_name(name, self.provider, self.own)


@dataclass(frozen=True, slots=True)
class Access:
    """An address and the key for it."""

    base_url: str
    api_key: str

    def __repr__(self) -> str:
        return f"Access({shown_address(self.base_url, path=False)})"

    @property
    def secret(self) -> str | None:
        return None if self.api_key == _NO_KEY else self.api_key


def setting_name(name: str, provider: str, own: bool) -> str:
    return f"llmSettings.{name}" if own else f"llmSettings.providers.{provider}.{name}"


def find_target(settings: LlmSettings, name: str | None, role: Role) -> Target:
    """The model a name means. ``provider:model`` picks the provider, but ``llama3:8b`` is a model's name."""
    name = name or getattr(settings.models, role)
    if not name:
        raise ModelError(f"no model is set for {role}: set llmSettings.models.{role}")
    prefix, _, rest = name.partition(":")
    known = {*_ADDRESSES, *settings.providers, settings.provider}
    provider, model = (prefix, rest) if rest and prefix in known else (settings.provider, name)
    address = settings.access(provider).base_url
    place = f"{provider} at {shown_address(address, path=False)}" if address else provider
    return Target(provider, model, place, own=provider not in settings.providers)


def find_access(settings: LlmSettings, provider: str) -> Access:
    """Where the provider is, and the key for it. A key from the environment goes to its own provider only."""
    own = provider not in settings.providers
    access = settings.access(provider)
    field = setting_name("apiKey", provider, own)
    if access.base_url:
        base_url = _resolved_address(access.base_url, setting_name("baseUrl", provider, own))
    elif provider in _ADDRESSES:
        base_url = _ADDRESSES[provider]
    else:
        raise ModelError(
            f'"{provider}" is read as an OpenAI-compatible server: '
            f"set {setting_name('baseUrl', provider, own)} to its address"
        )
    if access.api_key is not None:
        return Access(base_url, resolve_secret(access.api_key, field))
    variables = KEY_VARIABLES.get(provider)
    if variables is None or access.base_url:
        return Access(base_url, _NO_KEY)
    variable = next((name for name in variables if os.environ.get(name, "").strip()), None)
    if variable is None:
        raise ModelError(f"no key for {provider}: set {field} or the environment variable {variables[0]}")
    return Access(base_url, resolve_secret(f"${{{variable}}}", field))


def known_secrets(settings: LlmSettings) -> list[str | None]:
    """The keys of all providers in the settings, as far as they can be looked up here."""
    secrets: list[str | None] = []
    for provider in {settings.provider, *settings.providers}:
        with suppress(ModelError):
            secrets.append(find_access(settings, provider).secret)
    return secrets
