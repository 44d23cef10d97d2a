"""Sessions on a cassette: one that records what an agent says, one that plays it back without any agent.

A call is known by the agent and the conversation. Headers, run and thread ids, timings and limits are no
part of it, so that a recording made on one machine plays on another.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from ..cassettes import Cassette, CassetteError
from ..messages import Message, TokensUsage
from .contract import ConnectorDefinition, ConnectorSettings, Headers, RunInfo
from .errors import ConnectorError
from .http_pool import HttpPool
from .identity import config_shown, secrets_of
from .policy import CallPolicy
from .replies import AgentReply
from .secrets import shown_address
from .session import AgentSession

T = TypeVar("T")
Json = dict[str, Any]


class Session(Protocol):
    """One run's line to one agent, live or not."""

    @property
    def run(self) -> RunInfo: ...
    async def setup(self) -> None: ...
    async def invoke(self, messages: Sequence[Message], new_messages: Sequence[Message]) -> AgentReply: ...
    async def state(self) -> Json | None: ...


def open_session(
    definition: ConnectorDefinition,
    settings: ConnectorSettings[Any],
    *,
    pool: HttpPool,
    run: RunInfo,
    extra_headers: Headers | None = None,
    policy: CallPolicy | None = None,
    cassette: Cassette | None = None,
    asker: str = "",
) -> Session:
    """A session with the agent, recorded or replayed where there is a cassette.

    ``asker`` names the run in a way that stays the same (scenario, case, persona, repetition): runs that
    say the same to an agent then get their own answers back, in whatever order they ask.
    """
    if cassette is None:
        return AgentSession(
            definition, settings, pool=pool, run=run, extra_headers=extra_headers, policy=policy
        )
    track = Track.of(definition, settings, extra_headers or {}, cassette, asker)
    if cassette.replaying:
        return ReplayedSession(track, run)
    live = AgentSession(definition, settings, pool=pool, run=run, extra_headers=extra_headers, policy=policy)
    return RecordedSession(live, track)


@dataclass(slots=True, frozen=True)
class Track:
    """One agent's exchanges with one asker on a cassette."""

    definition: ConnectorDefinition
    agent: Json
    cassette: Cassette
    asker: str = ""

    @classmethod
    def of(
        cls,
        definition: ConnectorDefinition,
        settings: ConnectorSettings[Any],
        extra_headers: Headers,
        cassette: Cassette,
        asker: str = "",
    ) -> Track:
        cassette.hide(secrets_of(settings, extra_headers))
        agent = {
            "connector": definition.type,
            "baseUrl": shown_address(settings.base_url.strip()),
            "config": config_shown(settings.config),
        }
        return cls(definition, agent, cassette, asker)

    def request(self, op: str, **more: Any) -> Json:
        return {"op": op, **self.agent, **more}

    def keep(self, request: Json, response: Json) -> None:
        self.cassette.keep("agent", request, response, asker=self.asker)

    def find(self, request: Json) -> Json:
        response = self.cassette.find("agent", request, asker=self.asker)
        error: Json | None = response.get("error")
        if error is not None:
            raise ConnectorError(
                str(error.get("message", "")),
                again=bool(error.get("again")),
                retry_after=error.get("retryAfter"),
            )
        return response


class RecordedSession:
    """A live session whose exchanges are kept, errors too."""

    def __init__(self, session: AgentSession, track: Track) -> None:
        self._session = session
        self._track = track
        self._said: list[Message] = []

    @property
    def run(self) -> RunInfo:
        return self._session.run

    async def setup(self) -> None:
        if self._track.definition.setup_hook is not None:
            await self._kept(self._track.request("setup"), self._session.setup(), lambda _: {})

    async def invoke(self, messages: Sequence[Message], new_messages: Sequence[Message]) -> AgentReply:
        request = _invocation(self._track, messages, new_messages)
        before = list(messages)
        reply = await self._kept(request, self._session.invoke(messages, new_messages), _reply_json)
        self._said = [*before, *reply.messages]
        return reply

    async def state(self) -> Json | None:
        if self._track.definition.state_hook is None:
            return None
        request = self._track.request("state", messages=_plain(self._said))
        return await self._kept(request, self._session.state(), lambda state: {"state": state})

    async def _kept(self, request: Json, answer: Coroutine[Any, Any, T], to_json: Callable[[T], Json]) -> T:
        try:
            found = await answer
        except ConnectorError as error:
            told = {"message": str(error), "again": error.again, "retryAfter": error.retry_after}
            self._track.keep(request, {"error": told})
            raise
        self._track.keep(request, to_json(found))
        return found


class ReplayedSession:
    """Answers as the agent did when it was recorded. Nothing is called and nothing is waited for."""

    def __init__(self, track: Track, run: RunInfo) -> None:
        self.run = run
        self._track = track
        self._said: list[Message] = []

    async def setup(self) -> None:
        if self._track.definition.setup_hook is not None:
            self._track.find(self._track.request("setup"))

    async def invoke(self, messages: Sequence[Message], new_messages: Sequence[Message]) -> AgentReply:
        response = self._track.find(_invocation(self._track, messages, new_messages))
        try:
            reply = _reply(response)
        except (ValidationError, KeyError, TypeError, ValueError) as error:
            raise CassetteError(
                f"an answer recorded in {self._track.cassette.path} cannot be used: {error}"
            ) from None
        self._said = [*messages, *reply.messages]
        self.run.thread_id = reply.thread_id = reply.thread_id or self.run.thread_id
        self.run.thread_message_count += len(new_messages) + len(reply.messages)
        self.run.turn += 1
        return reply

    async def state(self) -> Json | None:
        if self._track.definition.state_hook is None:
            return None
        return self._track.find(self._track.request("state", messages=_plain(self._said))).get("state")


def _invocation(track: Track, messages: Sequence[Message], new_messages: Sequence[Message]) -> Json:
    seen = messages[: -len(new_messages)] if new_messages else messages
    return track.request("invoke", messages=_plain(seen), newMessages=_plain(new_messages))


def _plain(messages: Sequence[Message]) -> list[Json]:
    """The messages without their ids, which differ from run to run and mean nothing to an agent."""
    return [{name: item for name, item in m.to_json().items() if name != "id"} for m in messages]


def _reply_json(reply: AgentReply) -> Json:
    return {
        "messages": [message.to_json() for message in reply.messages],
        "latencyMs": reply.latency_ms,
        "tokensUsage": reply.tokens_usage.model_dump() if reply.tokens_usage else None,
        "threadId": reply.thread_id,
        "metadata": reply.metadata,
    }


def _reply(response: Json) -> AgentReply:
    usage = response.get("tokensUsage")
    return AgentReply(
        messages=[Message.model_validate(message) for message in response["messages"]],
        latency_ms=float(response["latencyMs"]),
        tokens_usage=TokensUsage.model_validate(usage) if usage is not None else None,
        thread_id=response.get("threadId"),
        metadata=response.get("metadata") or {},
    )
