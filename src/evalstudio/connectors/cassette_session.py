"""Sessions on a cassette: one that records what an agent says, one that plays it back without any agent.

A call is known by the agent and the conversation. Headers, run and thread ids, timings and limits are no
part of it, so that a recording made on one machine plays on another.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ValidationError

from ..cassettes import Cassette, CassetteError
from ..messages import Message, TokensUsage
from .connection import CallPolicy
from .contract import ConnectorDefinition, ConnectorError, ConnectorSettings, Headers, RunInfo, merge_headers
from .http_pool import HttpPool
from .replies import AgentReply
from .secrets import Redaction, resolve, shown_address, values_of
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
    recording = AgentRecording.of(definition, settings, extra_headers or {}, cassette, asker)
    if cassette.replaying:
        return ReplayedSession(recording, run)
    live = AgentSession(definition, settings, pool=pool, run=run, extra_headers=extra_headers, policy=policy)
    return RecordedSession(live, recording)


@dataclass(slots=True, frozen=True)
class AgentRecording:
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
    ) -> AgentRecording:
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

    def __init__(self, session: AgentSession, recording: AgentRecording) -> None:
        self._session = session
        self._recording = recording
        self._messages: list[Message] = []

    @property
    def run(self) -> RunInfo:
        return self._session.run

    async def setup(self) -> None:
        if self._recording.definition.setup_hook is not None:
            await self._kept(self._recording.request("setup"), self._session.setup(), lambda _: {})

    async def invoke(self, messages: Sequence[Message], new_messages: Sequence[Message]) -> AgentReply:
        request = _invocation(self._recording, messages, new_messages)
        before = list(messages)
        reply = await self._kept(request, self._session.invoke(messages, new_messages), _reply_json)
        self._messages = [*before, *reply.messages]
        return reply

    async def state(self) -> Json | None:
        if self._recording.definition.state_hook is None:
            return None
        request = self._recording.request("state", messages=_plain(self._messages))
        return await self._kept(request, self._session.state(), lambda state: {"state": state})

    async def _kept(self, request: Json, answer: Coroutine[Any, Any, T], to_json: Callable[[T], Json]) -> T:
        try:
            found = await answer
        except ConnectorError as error:
            told = {"message": str(error), "again": error.again, "retryAfter": error.retry_after}
            self._recording.keep(request, {"error": told})
            raise
        self._recording.keep(request, to_json(found))
        return found


class ReplayedSession:
    """Answers as the agent did when it was recorded. Nothing is called and nothing is waited for."""

    def __init__(self, recording: AgentRecording, run: RunInfo) -> None:
        self.run = run
        self._recording = recording
        self._messages: list[Message] = []

    async def setup(self) -> None:
        if self._recording.definition.setup_hook is not None:
            self._recording.find(self._recording.request("setup"))

    async def invoke(self, messages: Sequence[Message], new_messages: Sequence[Message]) -> AgentReply:
        response = self._recording.find(_invocation(self._recording, messages, new_messages))
        try:
            reply = _reply(response)
        except (ValidationError, KeyError, TypeError, ValueError) as error:
            raise CassetteError(
                f"an answer recorded in {self._recording.cassette.path} cannot be used: {error}"
            ) from None
        self._messages = [*messages, *reply.messages]
        self.run.thread_id = reply.thread_id = reply.thread_id or self.run.thread_id
        self.run.thread_message_count += len(new_messages) + len(reply.messages)
        self.run.turn += 1
        return reply

    async def state(self) -> Json | None:
        if self._recording.definition.state_hook is None:
            return None
        return self._recording.find(self._recording.request("state", messages=_plain(self._messages))).get(
            "state"
        )


def _invocation(
    recording: AgentRecording, messages: Sequence[Message], new_messages: Sequence[Message]
) -> Json:
    seen = messages[: -len(new_messages)] if new_messages else messages
    return recording.request("invoke", messages=_plain(seen), newMessages=_plain(new_messages))


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


# Names that end like this hold what nobody should read: apiKey, access_token, X-Secret, Set-Cookie.
_SECRET = re.compile(
    r"(api|access|private|signing)[-_]?key$|(token|secret|password|passphrase|cookie|authorization|headers"
    r"|credentials?)$",
    re.IGNORECASE,
)
# How patiently an agent is called says nothing about what it answers.
_LIMITS = frozenset({"timeoutSeconds", "timeout_seconds", "maxResponseBytes", "max_response_bytes"})


def config_shown(config: object) -> dict[str, Any]:
    """The config as plain data: what differs from the defaults, without secrets and limits."""
    shown = _without_secrets(_as_data(config))
    return {name: value for name, value in shown.items() if name not in _LIMITS}


def secrets_of(settings: ConnectorSettings[Any], extra_headers: Headers) -> set[str]:
    """What may be secret in an address, headers and a config, as far as it can be looked up here."""
    headers = merge_headers(settings.headers, extra_headers)
    referred = values_of(*headers.values())
    telling: dict[str, str] = {}
    for name, value in headers.items():
        if _SECRET.search(name):
            with suppress(ConnectorError):
                telling[name] = resolve(value, name)
    address = ""
    with suppress(ConnectorError):
        address = resolve(settings.base_url.strip(), "baseUrl")
    held = {*_secret_texts(_as_data(settings.config)), _basic_credentials(address)}
    return {*Redaction.of(address, telling, referred | held).secrets}


def _basic_credentials(address: str) -> str:
    """A name and password in an address, as they are sent in a header."""
    with suppress(ValueError):
        found = urlsplit(address).netloc.rpartition("@")[0]
        return b64encode(unquote(found).encode()).decode()
    return ""


def _as_data(config: object) -> dict[str, Any]:
    if isinstance(config, BaseModel):
        return config.model_dump(mode="json", by_alias=True, exclude_defaults=True, fallback=str)
    return dict(cast(Mapping[str, Any], config)) if isinstance(config, Mapping) else {}


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        fields = cast(Mapping[str, Any], value)
        return {
            name: _without_secrets(item) for name, item in fields.items() if not _SECRET.search(str(name))
        }
    return [_without_secrets(item) for item in cast(list[Any], value)] if isinstance(value, list) else value


def _secret_texts(value: Any, *, secret: bool = False) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in cast(Mapping[str, Any], value).items():
            yield from _secret_texts(item, secret=secret or bool(_SECRET.search(str(name))))
    elif isinstance(value, list):
        for item in cast(list[Any], value):
            yield from _secret_texts(item, secret=secret)
    elif secret and isinstance(value, str):
        yield value
