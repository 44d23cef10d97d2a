"""What a connection to a provider is: it asks once and lets errors through.

Trying again, and reading the reply as an answer, are the client's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pydantic import BaseModel

from ..base.lazy_dataclass import dataclass
from ..base.redaction import Redaction
from ..messages import Message, TokensUsage
from .settings import Role, Structured, Target

if TYPE_CHECKING:
    from .limits import Failure

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


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked: in text, or for one object of a schema."""

    target: Target
    role: Role
    messages: Sequence[Message]
    schema: type[BaseModel] | None = None
    structured: Structured = "native"


class Connection(Protocol):
    """One provider, ready to be asked."""

    @property
    def secret(self) -> str | None: ...
    @property
    def redact(self) -> Redaction: ...

    def takes_schema(self, name: str) -> bool:
        """Whether the model takes a JSON Schema for its reply."""
        ...

    async def ask(self, question: Question) -> Reply: ...

    async def embed(self, target: Target, texts: list[str]) -> tuple[object, TokensUsage]:
        """What was sent as vectors, still to be read, and what that used."""
        ...

    def explain(self, error: Exception, target: Target) -> Failure: ...
    async def aclose(self) -> None: ...
