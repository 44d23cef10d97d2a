"""``Llm``: chat, structured answers and embeddings, with limits, retries and one repair.

It fits the ``LanguageModel`` and ``Embedder`` contracts of the evaluators and belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from ..base.concurrency import blocking
from ..base.extras import needs_extra
from ..base.json_text import json_text
from ..cassettes import Cassette
from ..evaluators.contract import Answer
from ..messages import Message
from .answers import InvalidAnswer, read_answer
from .cache import AnswerCache, StoredAnswers, text_request, vector_request
from .embeddings import LOCAL_MODEL, batches, embed_locally, read_vectors
from .limits import RetryPolicy, RoleLimiter, call_with_retries
from .settings import LlmSettings, ModelError, Role, Structured, Target, find_target, known_secrets
from .usage import RoleUsage, cost_of

if TYPE_CHECKING:
    from .connections import Connection
    from .wire import Reply

T = TypeVar("T")
Shape = TypeVar("Shape", bound=BaseModel)

_ROLES: tuple[Role, ...] = ("evaluation", "persona", "embedding")
_LONGEST_QUOTE = 4_000
# Words by which servers say that they do not know the parameter that carries a schema.
_NO_SCHEMA = ("response_format", "json_schema", "output_config", "output_format", "responseschema")


class Llm:
    """Talks to model providers, as the settings say.

    With a cache, what was answered before is not asked again; with a cassette that is replayed, no provider
    is asked at all, and none of their libraries and keys is needed.
    """

    def __init__(
        self, settings: LlmSettings, *, cache: AnswerCache | None = None, cassette: Cassette | None = None
    ) -> None:
        self.settings = settings
        self._stored = StoredAnswers(cache, cassette)
        if self._stored.active:
            self._stored.hide(known_secrets(settings))
        self._policy = RetryPolicy(
            settings.max_retries, settings.timeout_seconds, settings.total_timeout_seconds
        )
        self._limiters: dict[Role, RoleLimiter] = {
            role: RoleLimiter(getattr(settings.concurrency, role)) for role in _ROLES
        }
        self._tallies: dict[Role, RoleUsage] = {role: RoleUsage() for role in _ROLES}
        self._connections: dict[str, Connection] = {}
        self._connecting = asyncio.Lock()
        self._without_schema: set[Target] = set()

    @property
    def usage(self) -> dict[Role, RoleUsage]:
        """What each role has used so far, and whether it is waiting for a rate limit right now."""
        return {
            role: replace(self._tallies[role], waiting_seconds=one.waiting_seconds, queued=one.queued)
            for role, one in self._limiters.items()
        }

    async def chat(
        self, messages: Sequence[Message], *, model: str | None = None, role: Role = "persona"
    ) -> Answer[str]:
        """The model's next message as text."""
        target = find_target(self.settings, model, role)
        if not self._stored.active:
            return await self._chat(target, messages, role)
        request = text_request(self.settings, target, messages, role)
        ask = partial(self._chat, target, messages, role)
        return await self._stored.text(request, str, ask, self._tallies[role])

    async def answer(
        self,
        messages: Sequence[Message],
        schema: type[Shape],
        *,
        model: str | None = None,
        role: Role = "evaluation",
    ) -> Answer[Shape]:
        """One object of the schema. A reply that is none is sent back once; after that it is an error."""
        target = find_target(self.settings, model, role)
        if not self._stored.active:
            return await self._answer(target, messages, schema, role)
        request = text_request(self.settings, target, messages, role, schema)
        ask = partial(self._answer, target, messages, schema, role)
        return await self._stored.text(
            request, lambda text: read_answer(text, schema), ask, self._tallies[role]
        )

    async def embed(self, texts: Sequence[str], *, model: str | None = None) -> list[list[float]]:
        """One vector per text, by the local model or a provider's."""
        if (model or self.settings.models.embedding) == LOCAL_MODEL:
            return await embed_locally(texts)
        target = find_target(self.settings, model, "embedding")
        if not self._stored.active:
            return await self._embed(target, texts)
        request_for = partial(vector_request, self.settings, target)
        ask = partial(self._embed, target)
        return await self._stored.vectors(texts, request_for, ask, self._tallies["embedding"])

    async def aclose(self) -> None:
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            await connection.aclose()

    async def __aenter__(self) -> Llm:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _chat(self, target: Target, messages: Sequence[Message], role: Role) -> Answer[str]:
        connection = await self._connect(target)
        reply = await self._ask(connection, target, messages, None, "native", role)
        if not reply.text.strip():
            raise ModelError(f"{_name(target)} answered nothing{_because(reply)}", raw=reply.text)
        return Answer(reply.text, reply.usage, reply.text)

    async def _answer(
        self, target: Target, messages: Sequence[Message], schema: type[Shape], role: Role
    ) -> Answer[Shape]:
        connection = await self._connect(target)
        reply = await self._ask_for(connection, target, messages, schema, role)
        try:
            return Answer(_read(reply, schema), reply.usage, reply.text)
        except InvalidAnswer as error:
            problem = str(error)
        self._tallies[role].repairs += 1
        again = [*messages, *_repair(reply, problem, schema)]
        second = await self._ask_for(connection, target, again, schema, role)
        try:
            return Answer(_read(second, schema), reply.usage + second.usage, second.text)
        except InvalidAnswer as error:
            problem = str(error)
        raise ModelError(
            connection.redact(f"{_name(target)} gave no usable answer, twice: {problem}"),
            raw=connection.redact(second.text or reply.text),
        )

    async def _embed(self, target: Target, texts: Sequence[str]) -> list[list[float]]:
        connection = await self._connect(target)
        vectors: list[list[float]] = []
        for batch in batches(texts):
            attempt = partial(connection.embed, target, batch)
            part, usage = await self._with_retries(attempt, connection, target, "embedding")
            self._tallies["embedding"].add(usage, cost_of(target.provider, target.model, usage))
            vectors += read_vectors(part, batch, target.place)
        return vectors

    async def _connect(self, target: Target) -> Connection:
        connection = self._connections.get(target.provider)
        if connection is not None:
            return connection
        async with self._connecting:
            if target.provider not in self._connections:
                # Loading a provider's library takes a second or two: not on the event loop.
                opening = partial(_open, self.settings, target.provider)
                self._connections[target.provider] = await blocking.run(opening)
                self._stored.hide([self._connections[target.provider].secret])
            return self._connections[target.provider]

    async def _ask_for(
        self,
        connection: Connection,
        target: Target,
        messages: Sequence[Message],
        schema: type[BaseModel],
        role: Role,
    ) -> Reply:
        """Ask with the schema as the reply's format, or as a tool's where only that is known."""
        structured: Structured = self.settings.structured
        if target in self._without_schema or not connection.takes_schema(target.model):
            structured = "tool"
        try:
            return await self._ask(connection, target, messages, schema, structured, role)
        except ModelError as error:
            message = str(error).lower()
            refused = error.status in (400, 422) and any(word in message for word in _NO_SCHEMA)
            if structured == "tool" or not refused:
                raise
        self._without_schema.add(target)
        return await self._ask(connection, target, messages, schema, "tool", role)

    async def _ask(
        self,
        connection: Connection,
        target: Target,
        messages: Sequence[Message],
        schema: type[BaseModel] | None,
        structured: Structured,
        role: Role,
    ) -> Reply:
        attempt = partial(connection.ask, target, messages, schema, structured, role)
        reply = await self._with_retries(attempt, connection, target, role)
        cost = cost_of(target.provider, target.model, reply.usage, reply.cached_tokens)
        self._tallies[role].add(reply.usage, cost)
        return reply

    async def _with_retries(
        self, attempt: Callable[[], Awaitable[T]], connection: Connection, target: Target, role: Role
    ) -> T:
        explain = partial(connection.explain, target=target)
        limiter, tally = self._limiters[role], self._tallies[role]
        return await call_with_retries(attempt, explain, limiter, self._policy, tally)


def _open(settings: LlmSettings, provider: str) -> Connection:
    with needs_extra(provider, f'the provider "{provider}"', ModelError):
        from .connections import Connection

        return Connection(settings, provider)


def _name(target: Target) -> str:
    return f"{target.model} ({target.place})"


def _because(reply: Reply) -> str:
    match reply.finish:
        case "length":
            return ": it ran into its token limit (llmSettings.maxTokens)"
        case "content_filter":
            return ": its content filter declined"
        case _:
            return ""


def _read(reply: Reply, schema: type[Shape]) -> Shape:
    if reply.finish in ("length", "content_filter"):
        raise InvalidAnswer(f"the reply is not complete{_because(reply)}")
    return read_answer(reply.text, schema)


def _repair(reply: Reply, problem: str, schema: type[BaseModel]) -> list[Message]:
    """The reply back to the model with what is wrong with it. The schema is told too: a server that ignores
    the requested format has never shown it to the model."""
    request = (
        f"Your reply could not be used: {problem}\n"
        "Answer again with exactly one JSON object and nothing else, fitting this JSON Schema:\n"
        f"{json_text(schema.model_json_schema())}"
    )
    quoted = Message(role="assistant", content=reply.text[:_LONGEST_QUOTE])
    return [quoted, Message(role="user", content=request)]
