"""``llmSettings`` of the config file: which models, where, with whose key and how hard to try.

Secrets stay references or masked values here; they are resolved when a connection is made.
"""

from __future__ import annotations

import os
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr
from pydantic.alias_generators import to_camel

from .errors import ModelError

Role = Literal["evaluation", "persona", "embedding"]
Structured = Literal["native", "tool"]

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_PRINTABLE = re.compile(r"[!-~]+")


def _address(value: str) -> str:
    url = value.strip().rstrip("/")
    if not _REFERENCE.search(url) and not re.match(r"https?://[^/\s]+", url):
        raise ValueError('must be an address such as "http://127.0.0.1:11434/v1"')
    return url


Address = Annotated[str, AfterValidator(_address)]


class _Settings(BaseModel):
    # Inputs are kept out of validation messages: one of them may be a key.
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", hide_input_in_errors=True
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
    concurrency: Concurrency = Field(default_factory=lambda: Concurrency.model_validate({}))
    temperature: Temperatures = Field(default_factory=lambda: Temperatures.model_validate({}))
    seed: int | None = None

    def access(self, provider: str) -> ProviderAccess:
        """Where and with whose key to reach a provider: a key never goes to another one's address."""
        if provider in self.providers:
            return self.providers[provider]
        return self if provider == self.provider else ProviderAccess.model_validate({})


def resolve(text: str, field: str) -> str:
    """The text with every ``${NAME}`` replaced from the environment."""

    def value_of(reference: re.Match[str]) -> str:
        value = os.environ.get(reference[1], "")
        if not value.strip():
            raise ModelError(
                f"{field} refers to the environment variable {reference[1]}, which is not set. "
                f"Set {reference[1]} and try again."
            )
        return value

    return _REFERENCE.sub(value_of, text).strip()


def resolve_secret(secret: SecretStr | str, field: str = "llmSettings.apiKey") -> str:
    """The secret itself, fit to be sent in a header."""
    value = resolve(secret.get_secret_value() if isinstance(secret, SecretStr) else secret, field)
    if not _PRINTABLE.fullmatch(value):
        raise ModelError(f"{field} is empty or has characters that no key has; copy the key again.")
    return value
