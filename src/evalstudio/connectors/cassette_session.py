"""A session with a cassette: it records what an agent answers, or replays it without any agent.

A call is known by the agent and the conversation. Headers, run and thread ids, timings and limits are no
part of it, so that a recording made on one machine can be replayed on another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from ..base.addresses import shown_address
from ..base.lazy_dataclass import dataclass
from ..base.redaction import Redaction, secrets_sent
from ..base.references import UnsetVariable, resolve
from ..cassettes import Cassette, CassetteError
from ..evaluators.results import Attempt
from ..messages import Message, read_messages, read_usage
from .connection import CallPolicy
from .contract import ConnectorDefinition, ConnectorError, ConnectorSettings, Headers, RunInfo
from .http_pool import HttpPool
from .replies import AgentReply, check_said
from .secrets import config_data, is_secret_setting, secrets_of
from .session import AgentSession

T = TypeVar("T")
Json = dict[str, Any]


def open_session(
    definition: ConnectorDefinition,
    settings: ConnectorSettings[Any],
    *,
    pool: HttpPool,
    run: RunInfo,
    extra_headers: Headers | None = None,
    policy: CallPolicy | None = None,
    cassette: Cassette | None = None,
    run_key: str = "",
    secrets: Collection[str] = (),
) -> Session:
    """A session with the agent, recorded or replayed where there is a cassette.

    ``run_key`` names the run in a way that stays the same (scenario, case, persona, repetition): runs that
    send the same to an agent then get their own answers back, in whatever order they ask. ``secrets`` are
    those of the project, beside what this agent is sent.
    """
    headers = extra_headers or {}
    recording = AgentRecording.of(definition, settings, headers, cassette, run_key) if cassette else None
    if recording is not None and recording.cassette.replaying:
        return CassetteSession(recording, run, None)
    live = AgentSession(
        definition, settings, pool=pool, run=run, extra_headers=headers, policy=policy, secrets=secrets
    )
    return live if recording is None else CassetteSession(recording, run, live)


@dataclass(slots=True, frozen=True)
class AgentRecording:
    """One agent's exchanges with one run on a cassette."""

    definition: ConnectorDefinition
    agent: Json
    cassette: Cassette
    run_key: str
    allow_empty: bool = False

    @classmethod
    def of(
        cls,
        definition: ConnectorDefinition,
        settings: ConnectorSettings[Any],
        extra_headers: Headers,
        cassette: Cassette,
        run_key: str,
    ) -> AgentRecording:
        cassette.hide(_secrets_of(settings, extra_headers))
        agent = {
            "connector": definition.type,
            "baseUrl": shown_address(settings.base_url.strip()),
            "config": _recorded_config(settings.config),
        }
        return cls(definition, agent, cassette, run_key, CallPolicy().for_config(settings.config).allow_empty)

    def request(self, op: str, **more: Any) -> Json:
        return {"op": op, **self.agent, **more}

    def keep(self, request: Json, response: Json) -> None:
        self.cassette.keep("agent", request, response, run_key=self.run_key)

    def find(self, request: Json) -> Json:
        response = self.cassette.find("agent", request, run_key=self.run_key)
        error: Json | None = response.get("error")
        if error is not None:
            message, again = str(error.get("message", "")), bool(error.get("again"))
            attempts = _attempts(error.get("attempts"))
            raise ConnectorError(message, again=again, retry_after=error.get("retryAfter"), attempts=attempts)
        return response


class CassetteSession:
    """A session whose exchanges are kept, errors too; without a live one they are answered as recorded."""

    def __init__(self, recording: AgentRecording, run: RunInfo, live: AgentSession | None) -> None:
        self.run = run
        self._recording = recording
        self.live = live
        self._messages: list[Message] = []
        self.state_redacted: list[str] = []

    @property
    def redaction(self) -> Redaction:
        return self.live.redaction if self.live is not None else Redaction()

    @property
    def hook_attempts(self) -> dict[str, list[Attempt]]:
        return self.live.hook_attempts if self.live is not None else {}

    async def setup(self) -> None:
        if self._recording.definition.setup_hook is not None:
            request = self._recording.request("setup")
            if self.live is None:
                self._recording.find(request)
            else:
                await self._record(request, self.live.setup(), lambda _: {})

    async def invoke(self, messages: Sequence[Message], new_messages: Sequence[Message]) -> AgentReply:
        request = _invocation(self._recording, messages, new_messages)
        before = list(messages)
        if self.live is None:
            reply = self._replay(self._recording.find(request), len(new_messages))
        else:
            reply = await self._record(request, self.live.invoke(messages, new_messages), _reply_json)
        self._messages = [*before, *reply.messages]
        return reply

    async def state(self) -> Json | None:
        if self._recording.definition.state_hook is None:
            return None
        request = self._recording.request("state", messages=_plain(self._messages))
        if self.live is None:
            response = self._recording.find(request)
            self.state_redacted = _places(response.get("redacted")) or []
            return response.get("state")
        return await self._record(request, self.live.state(), self._state_json)

    def _state_json(self, state: Json | None) -> Json:
        self.state_redacted = self.live.state_redacted if self.live is not None else []
        return {"state": state} | ({"redacted": self.state_redacted} if self.state_redacted else {})

    async def _record(self, request: Json, answer: Coroutine[Any, Any, T], to_json: Callable[[T], Json]) -> T:
        try:
            value = await answer
        except ConnectorError as error:
            if error.interrupted:
                raise
            fields: Json = {"message": str(error), "again": error.again, "retryAfter": error.retry_after}
            attempts = [attempt.to_json() for attempt in error.attempts]
            self._recording.keep(request, {"error": fields | ({"attempts": attempts} if attempts else {})})
            raise
        self._recording.keep(request, to_json(value))
        return value

    def _replay(self, response: Json, sent: int) -> AgentReply:
        try:
            reply = _reply(response)
        except (ValidationError, KeyError, TypeError, ValueError) as error:
            path = self._recording.cassette.path
            raise CassetteError(f"an answer recorded in {path} cannot be used: {error}") from None
        if not self._recording.allow_empty:
            check_said(reply.messages)
        self.run.thread_id = reply.thread_id = reply.thread_id or self.run.thread_id
        self.run.thread_message_count += sent + len(reply.messages)
        self.run.turn += 1
        return reply


Session = AgentSession | CassetteSession


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
        **({"usageMissing": reply.usage_missing} if reply.usage_missing else {}),
        **({"firstTokenMs": reply.first_token_ms} if reply.first_token_ms is not None else {}),
        **({"attempts": [one.to_json() for one in reply.attempts]} if reply.attempts else {}),
        **({"redacted": reply.redacted} if reply.redacted is not None else {}),
    }


def _attempts(recorded: Any) -> list[Attempt]:
    return TypeAdapter(list[Attempt]).validate_python(recorded or [])


def _places(recorded: Any) -> list[str] | None:
    return TypeAdapter(list[str] | None).validate_python(recorded)


def _reply(response: Json) -> AgentReply:
    usage, usage_missing = read_usage(response.get("tokensUsage"))
    return AgentReply(
        messages=read_messages(response["messages"]),
        latency_ms=float(response["latencyMs"]),
        tokens_usage=usage,
        thread_id=response.get("threadId"),
        metadata=response.get("metadata") or {},
        usage_missing=usage_missing or response.get("usageMissing"),
        first_token_ms=response.get("firstTokenMs"),
        attempts=_attempts(response.get("attempts")),
        redacted=_places(response.get("redacted")),
    )


# How patiently an agent is called says nothing about what it answers.
_LIMITS = frozenset(
    name
    for field in ("timeout_seconds", "max_response_bytes", "retry", "allow_empty")
    for name in (field, to_camel(field))
)


def _recorded_config(config: object) -> Json:
    """The config as plain data: what differs from the defaults, without secrets and limits."""
    fields = _without_secrets(config_data(config)).items()
    return {name: value for name, value in fields if name not in _LIMITS}


def _secrets_of(settings: ConnectorSettings[Any], extra_headers: Headers) -> set[str]:
    """What may be secret in an address, headers and a config, as far as it can be looked up here."""
    address = ""
    with suppress(UnsetVariable):
        address = resolve(settings.base_url.strip(), "baseUrl")
    return secrets_of(settings, extra_headers) | secrets_sent(address, {})


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        fields = cast(Mapping[str, Any], value)
        return {name: _without_secrets(item) for name, item in fields.items() if not is_secret_setting(name)}
    return [_without_secrets(item) for item in cast(list[Any], value)] if isinstance(value, list) else value
