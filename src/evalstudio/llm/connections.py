"""What a connection to a provider is, and which one a provider needs.

OpenAI's protocol is spoken by ``openai.py`` over our own HTTP pool; the protocols of other providers by their
libraries, through ``native.py``, each an extra. A connection asks once and lets errors through; trying again
and reading the reply as an answer are the client's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pydantic import BaseModel

from ..base.extras import needs_extra
from ..base.redaction import Redaction
from ..messages import Message, TokensUsage
from .settings import LlmSettings, ModelError, Role, Structured, Target

if TYPE_CHECKING:
    from .limits import Failure

# Each is the name of the extra that it needs, too.
NATIVE_PROVIDERS = frozenset({"anthropic", "google"})
# The tool whose arguments are the answer, where a model is asked for one by a tool call.
ANSWER_TOOL = "answer"
SYSTEM_ROLES = frozenset({"system", "developer"})
# Providers allow few characters in a schema's name.
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered, and what that used."""

    text: str
    usage: TokensUsage
    cached_tokens: int = 0
    finish: str | None = None


def schema_name(schema: type[BaseModel]) -> str:
    """The schema's name as every provider takes it."""
    return _UNFIT.sub("_", schema.__name__)[:64]


class Connection(Protocol):
    """One provider, ready to be asked."""

    @property
    def secret(self) -> str | None: ...
    @property
    def redact(self) -> Redaction: ...

    def takes_schema(self, name: str) -> bool:
        """Whether the model takes a JSON Schema for its reply."""
        ...

    async def ask(
        self,
        target: Target,
        messages: Sequence[Message],
        schema: type[BaseModel] | None,
        structured: Structured,
        role: Role,
    ) -> Reply: ...

    async def embed(self, target: Target, texts: list[str]) -> tuple[object, TokensUsage]:
        """What was sent as vectors, still to be read, and what that used."""
        ...

    def explain(self, error: Exception, target: Target) -> Failure: ...
    async def aclose(self) -> None: ...


def open_connection(settings: LlmSettings, provider: str) -> Connection:
    """A connection by the protocol the provider speaks; a library that is missing is named with its extra."""
    if provider in NATIVE_PROVIDERS:
        with needs_extra(provider, f'the provider "{provider}"', ModelError):
            from .native import NativeConnection

            return NativeConnection(settings, provider)
    from .openai import OpenAIConnection

    return OpenAIConnection(settings, provider)
