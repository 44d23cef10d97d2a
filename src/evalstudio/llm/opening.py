"""Which connection a provider needs.

OpenAI's protocol is spoken by ``openai.py`` over our own HTTP pool; the protocols of other providers by their
libraries, through ``native.py``, each an extra.
"""

from __future__ import annotations

from ..base.extras import needs_extra
from .connections import Connection
from .settings import LlmSettings, ModelError

# Each is the name of the extra that it needs, too.
NATIVE_PROVIDERS = frozenset({"anthropic", "google"})


def open_connection(settings: LlmSettings, provider: str) -> Connection:
    """A connection by the protocol the provider speaks; a library that is missing is named with its extra."""
    if provider in NATIVE_PROVIDERS:
        with needs_extra(provider, f'the provider "{provider}"', ModelError):
            from .native import NativeConnection

            return NativeConnection(settings, provider)
    from .openai import OpenAIConnection

    return OpenAIConnection(settings, provider)
