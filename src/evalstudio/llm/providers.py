"""Which provider and model a name means, where that provider is, and with whose key.

Nothing here imports a provider's library; ``connections`` does, on first use.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from .errors import ModelError
from .settings import LlmSettings, Role, resolve, resolve_secret

_ADDRESSES = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "ollama": "http://127.0.0.1:11434/v1",
}
_KEY_VARIABLES = {
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
        return f"Access({origin(self.base_url)})"

    @property
    def secret(self) -> str | None:
        return None if self.api_key == _NO_KEY else self.api_key


def setting_name(name: str, provider: str, own: bool) -> str:
    return f"llmSettings.{name}" if own else f"llmSettings.providers.{provider}.{name}"


def find_target(settings: LlmSettings, name: str | None, role: Role) -> Target:
    """The model a name means. ``provider:model`` picks the provider, but ``llama3:8b`` is a model's name."""
    wanted = name or getattr(settings.models, role)
    if not wanted:
        raise ModelError(f"no model is set for {role}: set llmSettings.models.{role}")
    prefix, _, rest = wanted.partition(":")
    known = {*_ADDRESSES, *settings.providers, settings.provider}
    provider, model = (prefix, rest) if rest and prefix in known else (settings.provider, wanted)
    given = settings.access(provider).base_url
    place = f"{provider} at {origin(given)}" if given else provider
    return Target(provider, model, place, own=provider not in settings.providers)


def find_access(settings: LlmSettings, provider: str) -> Access:
    """Where the provider is, and the key for it. A key from the environment goes to its own provider only."""
    own = provider not in settings.providers
    given = settings.access(provider)
    field = setting_name("apiKey", provider, own)
    if given.base_url:
        base_url = resolve(given.base_url, setting_name("baseUrl", provider, own))
    elif provider in _ADDRESSES:
        base_url = _ADDRESSES[provider]
    else:
        raise ModelError(
            f'"{provider}" is read as an OpenAI-compatible server: '
            f"set {setting_name('baseUrl', provider, own)} to its address"
        )
    if given.api_key is not None:
        return Access(base_url, resolve_secret(given.api_key, field))
    variables = _KEY_VARIABLES.get(provider)
    if variables is None or given.base_url:
        return Access(base_url, _NO_KEY)
    found = next((name for name in variables if os.environ.get(name, "").strip()), None)
    if found is None:
        raise ModelError(f"no key for {provider}: set {field} or the environment variable {variables[0]}")
    return Access(base_url, resolve_secret(f"${{{found}}}", field))


def known_secrets(settings: LlmSettings) -> list[str | None]:
    """The keys of all providers in the settings, as far as they can be looked up here."""
    found: list[str | None] = []
    for provider in {settings.provider, *settings.providers}:
        with suppress(ModelError):
            found.append(find_access(settings, provider).secret)
    return found


def origin(url: str) -> str:
    """Scheme, host and port: the part of an address that carries no secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else "the given address"
