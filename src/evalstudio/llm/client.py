"""``Llm``: chat, structured answers and embeddings, with limits, retries and one repair.

It fits the ``LanguageModel`` and ``Embedder`` contracts of the evaluators and belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from pydantic import BaseModel

from ..base.concurrency import blocking
from ..base.extras import needs_extra
from ..base.json_text import json_text
from ..base.lazy_dataclass import dataclass
from ..cassettes import Cassette
from ..evaluators.contract import Answer
from ..evaluators.model_replies import unread_parts
from ..messages import Message, TokensUsage
from ..telemetry import model_call
from .answers import InvalidAnswer, read_answer
from .cache import AnswerCache, StoredAnswers, text_request, vector_request
from .connections import Connection, Question, Reply
from .embeddings import LOCAL_MODEL, batches, embed_locally, read_vectors
from .limits import CallLimiter, RetryPolicy, call_with_retries
from .prices import cost_of
from .quota import ModelQuota, SharedLimits, quota_key
from .settings import (
    LlmSettings,
    ModelError,
    Role,
    Structured,
    Target,
    find_access,
    find_target,
    known_secrets,
)
from .usage import RoleUsage, count_usage

# Each is the name of the extra that it needs, too.
NATIVE_PROVIDERS = frozenset({"anthropic", "google"})
T = TypeVar("T")
Shape = TypeVar("Shape", bound=BaseModel)

_ROLES: tuple[Role, ...] = ("evaluation", "persona", "embedding")
_LONGEST_QUOTE = 4_000
# How a reply ends whose text is not what the model had to say.
_BROKEN_OFF = ("content_filter", "error")
# Words by which servers say that they do not know the parameter that carries a schema.
_NO_SCHEMA = ("response_format", "json_schema", "output_config", "output_format", "responseschema")


class Llm:
    """Talks to model providers, as the settings say.

    Limits hold over all processes that give the same ``shared`` ones. With a cache, what was answered before
    is not asked again; with a cassette that is replayed, no provider is asked at all, and none of their
    libraries and keys is needed.
    """

    def __init__(
        self,
        settings: LlmSettings,
        *,
        cache: AnswerCache | None = None,
        cassette: Cassette | None = None,
        shared: SharedLimits | None = None,
    ) -> None:
        self.settings = settings
        self._shared = shared
        self._quotas: dict[Target, ModelQuota] = {}
        self._stored = StoredAnswers(cache, cassette)
        if self._stored.active:
            self._stored.hide(known_secrets(settings))
        self._policy = RetryPolicy(
            settings.max_retries, settings.timeout_seconds, settings.total_timeout_seconds
        )
        self._limiters: dict[tuple[Role, Target], CallLimiter] = {}
        self._tallies: dict[Role, RoleUsage] = {role: RoleUsage() for role in _ROLES}
        self._connections: dict[str, Connection] = {}
        self._connecting = asyncio.Lock()
        self._without_schema: set[Target] = set()

    @property
    def usage(self) -> dict[Role, RoleUsage]:
        """What each role has used so far, and whether it is waiting for a rate limit right now."""
        return {role: self._usage(role) for role in _ROLES}

    def _usage(self, role: Role) -> RoleUsage:
        limiters = [one for (used_by, _), one in self._limiters.items() if used_by == role]
        waiting = max((one.waiting_seconds for one in limiters), default=0.0)
        queued = sum(one.queued for one in limiters)
        return replace(self._tallies[role], waiting_seconds=waiting, queued=queued)

    def refusal(self, role: Role, model: str | None = None) -> str | None:
        """Why a model would not be asked at the moment: its provider keeps refusing the credentials."""
        try:
            return self._limiter(find_target(self.settings, model, role), role).refusal
        except ModelError:
            return None

    def _limiter(self, target: Target, role: Role) -> CallLimiter:
        """One for each model in each role: the role says how many calls at once, the model how fast."""
        limiter = self._limiters.get((role, target))
        if limiter is None:
            limiter = self._limiters[role, target] = CallLimiter(getattr(self.settings.concurrency, role))
        return limiter

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
        """One object of the schema. A reply that is none is sent back once; after that it is an error.

        Of a ``PartedReply`` those parts may be missing that could not be read twice.
        """
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
        reply = await self._ask(connection, Question(target, role, messages))
        if not reply.text.strip() or reply.finish in _BROKEN_OFF:
            raise ModelError(f"{_name(target)} answered nothing{_because(reply)}", raw=reply.text)
        return Answer(reply.text, reply.usage, reply.text)

    async def _answer(
        self, target: Target, messages: Sequence[Message], schema: type[Shape], role: Role
    ) -> Answer[Shape]:
        connection = await self._connect(target)
        reply = await self._ask_for(connection, target, messages, schema, role)
        first = _read(reply, schema)
        if first.value is not None and not first.problem:
            return Answer(first.value, reply.usage, reply.text)
        self._tallies[role].repairs += 1
        again = [*messages, *_repair(reply, first.problem, schema)]
        try:
            last_reply = await self._ask_for(connection, target, again, schema, role)
        except ModelError:
            if first.value is None:
                raise
            return Answer(first.value, reply.usage, connection.redact(reply.text))
        last = _read(last_reply, schema)
        # The last word counts. Where it is no answer at all, the parts read before it stand.
        kept = (last, last_reply) if last.value is not None else (first, reply)
        if kept[0].value is not None:
            usage = reply.usage + last_reply.usage
            return Answer(kept[0].value, usage, connection.redact(kept[1].text))
        raise ModelError(
            connection.redact(f"{_name(target)} gave no usable answer, twice: {last.problem}"),
            raw=connection.redact(last_reply.text or reply.text),
        )

    async def _embed(self, target: Target, texts: Sequence[str]) -> list[list[float]]:
        connection = await self._connect(target)
        vectors: list[list[float]] = []
        for batch in batches(texts):
            attempt = partial(connection.embed, target, batch)
            asking = self._with_retries(attempt, connection, target, "embedding")
            part, usage = await model_call(asking, "embedding", target.provider, target.model)
            self._count("embedding", usage, cost_of(target.provider, target.model, usage))
            vectors += read_vectors(part, batch, target.place)
        return vectors

    async def _connect(self, target: Target) -> Connection:
        connection = self._connections.get(target.provider)
        if connection is not None:
            return connection
        async with self._connecting:
            if target.provider not in self._connections:
                # Loading what it takes to ask a provider is nothing for the event loop.
                opening = partial(open_connection, self.settings, target.provider)
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
            return await self._ask(connection, Question(target, role, messages, schema, structured))
        except ModelError as error:
            message = str(error).lower()
            refused = error.status in (400, 422) and any(word in message for word in _NO_SCHEMA)
            if structured == "tool" or not refused:
                raise
        self._without_schema.add(target)
        return await self._ask(connection, Question(target, role, messages, schema, "tool"))

    async def _ask(self, connection: Connection, question: Question) -> Reply:
        target, role = question.target, question.role
        asking = self._with_retries(partial(connection.ask, question), connection, target, role)
        reply = await model_call(asking, role, target.provider, target.model, question.messages)
        cost = cost_of(target.provider, target.model, reply.usage, reply.cached_tokens)
        self._count(role, reply.usage, cost)
        return reply

    def _count(self, role: Role, usage: TokensUsage, cost: float | None) -> None:
        self._tallies[role].add(usage, cost)
        count_usage(role, usage, cost)

    async def _with_retries(
        self, attempt: Callable[[], Awaitable[T]], connection: Connection, target: Target, role: Role
    ) -> T:
        explain = partial(connection.explain, target=target)
        limiter, tally = self._limiter(target, role), self._tallies[role]
        quota = self._quota(target).of_role(role, limiter)
        return await call_with_retries(attempt, explain, limiter, self._policy, tally, quota)

    def _quota(self, target: Target) -> ModelQuota:
        quota = self._quotas.get(target)
        if quota is None:
            key = quota_key(find_access(self.settings, target.provider), target)
            quota = ModelQuota(key, self.settings.requests_per_minute, self._shared)
            self._quotas[target] = quota
        return quota


def _name(target: Target) -> str:
    return f"{target.model} ({target.place})"


def _because(reply: Reply) -> str:
    match reply.finish:
        case "length":
            return ": it ran into its token limit (llmSettings.maxTokens)"
        case "content_filter":
            return ": its content filter declined"
        case "error":
            return ": its server ended it with an error"
        case _:
            return ""


@dataclass(frozen=True, slots=True)
class _Reading(Generic[Shape]):
    """What a reply says, and what is wrong with it. Both, where only some of its parts can be read."""

    value: Shape | None
    problem: str = ""


def _read(reply: Reply, schema: type[Shape]) -> _Reading[Shape]:
    if reply.finish in ("length", *_BROKEN_OFF):
        return _Reading(None, f"the reply is not complete{_because(reply)}")
    try:
        value = read_answer(reply.text, schema)
    except InvalidAnswer as error:
        return _Reading(None, str(error))
    return _Reading(value, unread_parts(value))


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


def open_connection(settings: LlmSettings, provider: str) -> Connection:
    """A connection by the protocol the provider speaks; a library that is missing is named with its extra."""
    if provider in NATIVE_PROVIDERS:
        with needs_extra(provider, f'the provider "{provider}"', ModelError):
            from .native import NativeConnection

            return NativeConnection(settings, provider)
    from .openai import OpenAIConnection

    return OpenAIConnection(settings, provider)
