"""What a session prepares once for all its calls, and how patiently an agent is called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from copy import copy
from dataclasses import field, replace
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, create_model
from pydantic.alias_generators import to_camel

from ..base.concurrency import Clock
from ..base.lazy_dataclass import dataclass
from ..base.paths import fields_of
from ..base.redaction import Redaction
from ..base.retry import backoff
from ..base.schemas import Schema
from ..configs import StrictConfig

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from aiohttp.abc import AbstractCookieJar

    from .http_pool import HttpPool

CONNECT, CLOSED, TIMEOUT = "connect", "closed", "timeout"
# The agent had begun to answer: nothing that a call is made again after.
BROKEN_OFF = "broken off"
_CAUSE = re.compile(r"connect|closed|timeout|[45]\d\d|[45]xx")


def _known(cause: str) -> str:
    if not _CAUSE.fullmatch(cause):
        words = "connect, closed, timeout, a status such as 429, or 4xx and 5xx"
        raise ValueError(f'"{cause}" is nothing a call is made again after; known are {words}')
    return cause


def _as_text(cause: object) -> object:
    return str(cause) if isinstance(cause, int) and not isinstance(cause, bool) else cause


Cause = Annotated[str, BeforeValidator(_as_text), AfterValidator(_known), Field(title="Reason to call again")]


class RetrySettings(StrictConfig):
    """After which failures a call is made again, and how often."""

    attempts: int = Field(default=3, ge=1, le=20, description="Most calls for one turn, the first included")
    on: list[Cause] | None = Field(
        default=None,
        title="Reasons to call again",
        description="connect (the agent was not reached), closed (it closed the connection without an "
        "answer), timeout, a status such as 429, 4xx or 5xx; connect, 429 and 503 with Retry-After "
        "if not given",
    )
    longest_wait_seconds: float | None = Field(
        default=None, ge=0, le=3_600, description="Longest pause before another call; 30 if not given"
    )


class CallLimits(StrictConfig):
    """The limits every connector may set in its config; the session's hold where it does not."""

    timeout_seconds: float | None = Field(
        default=None, gt=0, le=86_400, description="Longest wait for one answer; 60 if not given"
    )
    retry: RetrySettings | None = Field(
        default=None, description="When a call is made again: {attempts, on, longestWaitSeconds}"
    )
    allow_empty: bool = Field(
        default=False, description="Whether an answer with neither text nor a tool call is one"
    )


class RemoteConfig(CallLimits):
    """The limits of a connector whose answers come over HTTP."""

    max_response_bytes: int | None = Field(
        default=None, ge=1, description="Largest answer that is read; 10,000,000 if not given"
    )


def with_call_limits(shape: type[BaseModel] | Schema | None) -> type[BaseModel] | Schema:
    """A plugin's config that also takes what every connector does, unless it has its own."""
    if isinstance(shape, type):
        return _model_with_limits(shape)
    schema = dict(shape or {"type": "object", "additionalProperties": False})
    return {**schema, "properties": {**_LIMITS_SCHEMA, **fields_of(schema.get("properties"))}}


# The same as CallLimits, without the references and defaults a schema of someone else's has no place for.
_LIMITS_SCHEMA: Schema = {
    "timeoutSeconds": {"type": "number", "exclusiveMinimum": 0, "maximum": 86_400},
    "retry": {
        "type": "object",
        "properties": {
            "attempts": {"type": "integer", "minimum": 1, "maximum": 20},
            "on": {
                "type": "array",
                "items": {"type": ["string", "integer"], "pattern": f"^({_CAUSE.pattern})$"},
            },
            "longestWaitSeconds": {"type": "number", "minimum": 0, "maximum": 3_600},
        },
        "additionalProperties": False,
    },
    "allowEmpty": {"type": "boolean"},
}


def _model_with_limits(model: type[BaseModel]) -> type[BaseModel]:
    known = {*model.model_fields, *(field.alias for field in model.model_fields.values())}
    missing: dict[str, Any] = {
        name: (field.annotation, copy(field))
        for name, field in CallLimits.model_fields.items()
        if name not in known and field.alias not in known
    }
    if not missing or model.__pydantic_root_model__:
        return model
    return create_model(
        model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **missing
    )


@dataclass(slots=True, frozen=True)
class CallPolicy:
    """The limits of one call to an agent."""

    timeout_seconds: float = 60.0
    connect_seconds: float = 10.0
    total_seconds: float = 180.0
    max_response_bytes: int = 10_000_000
    max_messages: int = 1_000
    attempts: int = 3
    retry_on: frozenset[str] | None = None
    backoff_seconds: float = 0.5
    longest_wait_seconds: float = 30.0
    jitter: float = 0.25
    allow_empty: bool = False

    @property
    def whole_seconds(self) -> float:
        """The time all attempts and waits may take together; never less than one attempt."""
        return max(self.total_seconds, self.timeout_seconds)

    def for_config(self, config: object) -> CallPolicy:
        """The same with the limits a connector's config sets itself."""
        own = {name: _setting(config, name) for name in _OF_CONFIG}
        own = {name: value for name, value in own.items() if value is not None}
        policy = replace(self, **own) if own else self
        return policy.with_retry(_setting(config, "retry"))

    def with_retry(self, retry: RetrySettings | Mapping[str, Any] | None) -> CallPolicy:
        """The same with another rule for calling again."""
        if retry is None:
            return self
        rule = RetrySettings.model_validate(retry)
        longest = rule.longest_wait_seconds
        longest = self.longest_wait_seconds if longest is None else longest
        return replace(
            self,
            attempts=rule.attempts,
            retry_on=None if rule.on is None else frozenset(rule.on),
            longest_wait_seconds=longest,
            # A pause that was asked for by name must fit into the whole.
            total_seconds=max(self.total_seconds, self.timeout_seconds + longest),
        )

    def repeats_after(self, cause: str | None, retry_after: float | None, *, again: bool = False) -> bool:
        """Whether a call that failed this way is made again.

        A request that may have reached the agent is not sent twice unless the agent, its connector or the
        config says so: the agent may have acted on it.
        """
        if again or cause is None:
            return again
        if self.retry_on is None:
            return cause in (CONNECT, "429") or (cause == "503" and retry_after is not None)
        return cause in self.retry_on or (cause.isdecimal() and f"{cause[0]}xx" in self.retry_on)

    def wait_before(self, retry: int, requested: float | None, chance: float) -> float:
        """Seconds before a retry (from 1): as the agent asked, else doubling; spread by chance (0–1)."""
        longest = self.longest_wait_seconds
        seconds = backoff(retry, self.backoff_seconds, longest) if requested is None else requested
        return min(seconds * (1 + self.jitter * chance), longest)

    def too_long(self, requested: float | None, left: float) -> str:
        """Why as long a wait as the agent asks for is not waited; empty where it is."""
        if requested is None or (requested < left and requested <= self.longest_wait_seconds):
            return ""
        if requested > self.longest_wait_seconds:
            most = f"{self.longest_wait_seconds:g} s that are waited at most (retry.longestWaitSeconds)"
        else:
            most = f"{max(left, 0):.3g} s that are left"
        return f"asked to wait {requested:g} s, longer than the {most}"


_OF_CONFIG = ("timeout_seconds", "max_response_bytes", "allow_empty")


def _setting(config: object, name: str) -> Any:
    if isinstance(config, Mapping):
        return cast(Mapping[str, Any], config).get(to_camel(name))
    return getattr(config, name, None)


@dataclass(slots=True)
class AgentConnection:
    """What a session prepared for calling one agent. ``address`` is the agent's without anything secret.

    ``sent_at`` is when the call's first request was sent, ``received_at`` when the last answer came in: the
    agent's time, without the wait for our own loop. None means that nothing was sent yet. The cookies are
    those the agent has set in this run.
    """

    pool: HttpPool
    headers: dict[str, str]
    policy: CallPolicy = field(default_factory=CallPolicy)
    address: str = ""
    redact: Redaction = field(default_factory=Redaction)
    sent_at: float | None = None
    received_at: float = 0.0
    first_token_at: float | None = None
    clock: Clock = field(default_factory=Clock)
    cookies: AbstractCookieJar | None = None
    own_accept: bool = False
    """Whether the headers were given an ``Accept`` of their own."""
    requests: Counter[str] = field(default_factory=Counter[str])
    """The requests of this attempt at the call, each with how often it was sent."""

    @property
    def http(self) -> ClientSession:
        """The client of the running loop."""
        return self.pool.client()

    def begin(self) -> Clock:
        """A new attempt: nothing was sent or received yet, and its clock starts."""
        self.sent_at, self.received_at, self.first_token_at = None, 0.0, None
        self.clock = Clock()
        self.requests.clear()
        return self.clock

    def seconds_taken(self) -> float:
        """What the agent took: from the request that was sent to the last data that came in.

        Where that is not known, it is what the clock shows. What this process was busy with in between is
        not the agent's.
        """
        if self.received_at <= self.clock.start:
            return self.clock.seconds()
        return max(0.0, self.received_at - (self.sent_at or self.clock.start) - self.clock.stopped_seconds)

    def first_token_seconds(self) -> float | None:
        """What passed until the first text or tool call of a stream came in."""
        if self.first_token_at is None:
            return None
        taken = self.first_token_at - (self.sent_at or self.clock.start)
        return max(0.0, taken - self.clock.stopped_seconds)
