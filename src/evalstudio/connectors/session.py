"""One run's connection to one agent: calls with limits and retries, answers in one shape, errors in words.

Whatever a connector's function does, what comes out is a reply, a ``ConnectorError`` or a cancellation.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeGuard, cast
from uuid import uuid4

import orjson

from ..base.addresses import shown_address
from ..base.concurrency import TimeLimitExceeded, WorkAborted, bounded, pulse
from ..base.json_text import json_text
from ..base.lazy_dataclass import dataclass
from ..base.paths import Steps
from ..base.redaction import SHORTEST_IN_ANSWERS, Redaction
from ..base.references import UnsetVariable
from ..base.retry import spread
from ..base.traces import described, trace_of
from ..evaluators.results import Attempt
from ..messages import Message
from ..telemetry import agent_call
from .calling import call
from .connection import BROKEN_OFF, CLOSED, CONNECT, TIMEOUT, AgentConnection, CallPolicy
from .contract import (
    ConnectorContext,
    ConnectorDefinition,
    ConnectorError,
    ConnectorSettings,
    Headers,
    RunInfo,
)
from .http_pool import HttpPool
from .lookups import facts_of
from .replies import AgentReply, read_reply, read_test
from .secrets import redact_reply, redacted_data, shown_places

if TYPE_CHECKING:
    from aiohttp import ClientError

log = logging.getLogger("evalstudio")

_LOST_WHILE_STOPPED = frozenset({CONNECT, CLOSED, TIMEOUT, BROKEN_OFF})
_CLOSE_SECONDS = 10.0
_LONGEST_DETAIL = 2_000
_LONGEST_RESPONSE = 2_000
_LARGEST_METADATA = 64_000


@dataclass(slots=True)
class _Call:
    """What calling a connector's function took; the attempts are those of a call that had to be repeated."""

    latency_ms: float
    first_token_ms: float | None
    attempts: list[Attempt]


class AgentSession:
    """Calls one agent for one run, one call after another; the run's info is kept up to date in between."""

    def __init__(
        self,
        definition: ConnectorDefinition,
        settings: ConnectorSettings[Any],
        *,
        pool: HttpPool,
        run: RunInfo,
        extra_headers: Headers | None = None,
        policy: CallPolicy | None = None,
        secrets: Collection[str] = (),
    ) -> None:
        self.definition = definition
        self.run = run
        self._settings = settings
        self._pool = pool
        self._extra = extra_headers or {}
        self._policy = _policy(policy or CallPolicy(), definition, settings.config)
        self._secrets = secrets
        self._answers = Redaction()
        self.hook_attempts: dict[str, list[Attempt]] = {}
        self.state_redacted: list[str] = []
        self._opened: tuple[ConnectorSettings[Any], Headers, AgentConnection] | None = None

    async def setup(self) -> None:
        """Prepare the agent for the run, where its connector has a hook for that."""
        if self.definition.setup_hook is not None:
            ctx = self._context((), (), "setup")
            _, taken = await self._attempt(self.definition.setup_hook, ctx)
            self._note("setup", taken)

    async def invoke(self, messages: Sequence[Message], new_messages: Sequence[Message]) -> AgentReply:
        """Carry the conversation to the agent and bring back what it adds."""
        with agent_call(self.definition.type, self._place, new_messages) as span:
            reply = await self._invoke(messages, new_messages)
            span.answered(reply)
            return reply

    async def _invoke(self, messages: Sequence[Message], new_messages: Sequence[Message]) -> AgentReply:
        ctx = self._context(messages, new_messages)
        returned, taken = await self._attempt(self.definition.function, ctx)
        try:
            most, allow_empty = self._policy.max_messages, self._policy.allow_empty
            reply = read_reply(returned, taken.latency_ms, most, allow_empty=allow_empty)
            reply.metadata = _json_metadata(reply.metadata)
            # The agent is told its own thread id as it is; everybody else sees it without secrets.
            self.run.thread_id = reply.thread_id = reply.thread_id or self.run.thread_id
            redact_reply(reply, self._answers)
        except ConnectorError as error:
            raise self._named(error) from None
        reply.attempts = taken.attempts
        if reply.first_token_ms is None:
            reply.first_token_ms = taken.first_token_ms
        self.run.thread_message_count += len(new_messages) + len(reply.messages)
        self.run.turn += 1
        return reply

    async def state(self) -> dict[str, Any] | None:
        """The agent's end state, where its connector has a hook for that."""
        if self.definition.state_hook is None:
            return None
        state, taken = await self._attempt(self.definition.state_hook, self._context((), (), "state"))
        self._note("state", taken)
        if state is None or isinstance(state, dict):
            return self._without_secrets(cast("dict[str, Any] | None", state))
        kind = type(state).__name__
        raise self._named(ConnectorError(f"its state hook must return a dict, not a {kind}"))

    def _without_secrets(self, state: dict[str, Any] | None) -> dict[str, Any] | None:
        places: list[Steps] = []
        try:
            state = redacted_data(state, self._answers, ("state",), places)
        except ConnectorError as error:
            raise self._named(error) from None
        self.state_redacted = shown_places(places)
        return state

    async def probe(self) -> str:
        """Find out whether the agent is there: by the test hook, else by saying hello."""
        if self.definition.test_hook is None:
            hello = [Message(role="user", content="Hello")]
            return _reply_text((await self.invoke(hello, hello)).messages)
        answer, _ = await self._attempt(self.definition.test_hook, self._context((), (), "test"))
        try:
            return self._answers(read_test(answer))
        except ConnectorError as error:
            raise self._named(error) from None

    def _context(
        self, messages: Sequence[Message], new_messages: Sequence[Message], call_name: str = "invoke"
    ) -> ConnectorContext[Any]:
        if self._opened is None:
            try:
                self._opened = self._open()
            except UnsetVariable as error:
                raise self._named(ConnectorError(str(error))) from None
        settings, extra, connection = self._opened
        return ConnectorContext(
            settings, list(messages), list(new_messages), self.run, extra, connection, call_name
        )

    def _open(self) -> tuple[ConnectorSettings[Any], Headers, AgentConnection]:
        """Look up what is referred to, once for all calls of the run."""
        facts = facts_of(self._settings, self._extra, self._secrets)
        self._answers = facts.answers
        connection = AgentConnection(
            pool=self._pool,
            headers=dict(facts.headers),
            policy=self._policy,
            address=facts.address,
            own_accept=facts.own_accept,
            redact=facts.redact,
        )
        return facts.settings, facts.extra, connection

    async def _attempt(
        self, function: Callable[..., Any], ctx: ConnectorContext[Any]
    ) -> tuple[object, _Call]:
        """Call until it succeeds or must not be tried again; the time is the last attempt's."""
        policy, connection = self._policy, ctx.connection
        left = policy.whole_seconds
        attempts: list[Attempt] = []
        while True:
            clock = connection.begin()
            number = len(attempts) + 1
            seconds = min(policy.timeout_seconds, left)
            try:
                returned = await bounded(call(function, ctx, clock=clock), seconds, clock)
                return returned, _taken(connection, [*attempts, Attempt(number)] if attempts else [])
            except TimeLimitExceeded:
                limit = "timeoutSeconds" if seconds == policy.timeout_seconds else "all that was left"
                late = f"{self._place} did not answer within {seconds:.3g} s ({limit})"
                failure, cause = ConnectorError(late, cause=TIMEOUT), None
            except ConnectorError as error:
                failure, cause = error, error.__cause__
            except Exception as error:
                failure, cause = self._as_connector_error(error), error
            pulse.look()
            left -= clock.seconds()
            if clock.stopped_seconds > 0 and failure.cause in _LOST_WHILE_STOPPED:
                raise self._interrupted(failure, clock.stopped_seconds) from cause
            attempts.append(Attempt(number, self._redacted(str(failure)), None, failure.retry_after))
            wait = self._wait_after(failure, attempts, left)
            if wait is None:
                raise self._named(failure, attempts, cause) from cause
            attempts[-1].wait_ms = round(wait * 1000, 3)
            await asyncio.sleep(wait)
            left -= wait

    def _interrupted(self, failure: ConnectorError, seconds: float) -> ConnectorError:
        """What was lost while this process was stopped says nothing of the agent."""
        stopped = (
            f"this process was stopped for {seconds:.3g} s while the agent was asked; after that: {failure}"
        )
        error = self._named(ConnectorError(stopped))
        error.interrupted = True
        return error

    def _wait_after(self, failure: ConnectorError, attempts: list[Attempt], left: float) -> float | None:
        """Seconds before the next attempt; nothing where there is none."""
        policy, asked = self._policy, failure.retry_after
        if len(attempts) >= policy.attempts:
            return None
        if not policy.repeats_after(failure.cause, asked, again=failure.again):
            return None
        if reason := policy.too_long(asked, left):
            failure.args = (f"{failure}; it {reason}",)
            return None
        wait = policy.wait_before(len(attempts), asked, spread())
        return wait if wait < left else None

    def _note(self, hook: str, taken: _Call) -> None:
        if taken.attempts:
            self.hook_attempts[hook] = taken.attempts

    @property
    def _place(self) -> str:
        return shown_address(self._settings.base_url.strip()) or "it"

    def _as_connector_error(self, error: Exception) -> ConnectorError:
        """What a connector's function raised, as our own error."""
        assert self._opened is not None
        if _is_of_http(error):
            from .exchange import explain

            return explain(error, self._opened[2], self._place)
        if isinstance(error, WorkAborted):
            return ConnectorError(f"it {error}")
        cause = None
        if isinstance(error, ConnectionError):
            cause = CONNECT if isinstance(error, ConnectionRefusedError) else CLOSED
        return ConnectorError(described(error), cause=cause)

    @property
    def redaction(self) -> Redaction:
        """What takes out of a text what this agent is sent in secret."""
        if self._opened is not None:
            return self._opened[2].redact
        return Redaction.of(self._secrets, shortest=SHORTEST_IN_ANSWERS)

    def _redacted(self, text: str) -> str:
        return self.redaction(text)[:_LONGEST_DETAIL]

    def _named(
        self, error: ConnectorError, attempts: Sequence[Attempt] = (), cause: BaseException | None = None
    ) -> ConnectorError:
        """The error with the connector's name before it and nothing secret in it."""
        tried = f" (tried {len(attempts)} times)" if len(attempts) > 1 else ""
        plugin = f" (plugin {self.definition.plugin})" if self.definition.plugin else ""
        named = ConnectorError(
            f'Connector "{self.definition.type}"{plugin}: {self._redacted(str(error))}{tried}',
            again=error.again,
            retry_after=error.retry_after,
            cause=error.cause,
            attempts=attempts if len(attempts) > 1 else (),
        )
        if cause is not None and not (isinstance(cause, WorkAborted) or _is_of_http(cause)):
            named.traceback = trace_of(cause, self.redaction)
        return named


def _is_of_http(error: BaseException) -> TypeGuard[ClientError]:
    """Whether it is an error of the HTTP client, which is imported only where a connector uses it."""
    aiohttp = sys.modules.get("aiohttp")
    return aiohttp is not None and isinstance(error, aiohttp.ClientError)


def _policy(policy: CallPolicy, definition: ConnectorDefinition, config: object) -> CallPolicy:
    """The limits of calls: the config's, else the connector type's, else the session's."""
    if definition.timeout is not None:
        policy = replace(policy, timeout_seconds=definition.timeout)
    return policy.with_retry(definition.retry).for_config(config)


def _taken(connection: AgentConnection, attempts: list[Attempt]) -> _Call:
    first = connection.first_token_seconds()
    return _Call(connection.seconds_taken() * 1000, None if first is None else first * 1000, attempts)


def _json_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """What a connector says of a call, as the JSON that is kept with the turn."""
    if not metadata:
        return {}
    try:
        raw = orjson.dumps(metadata)
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise ConnectorError(f"the metadata of the answer is not JSON: {error}") from None
    if len(raw) > _LARGEST_METADATA:
        size = f"{len(raw):,} bytes; the limit is {_LARGEST_METADATA:,}"
        raise ConnectorError(f"the metadata of the answer takes {size}")
    return orjson.loads(raw)


def _reply_text(messages: Iterable[Message]) -> str:
    texts = [m.text or json_text([c.model_dump() for c in m.tool_calls or ()]) for m in messages]
    return "\n".join(texts)[:_LONGEST_RESPONSE]


@dataclass(slots=True)
class ConnectorCheck:
    """What testing a connector found."""

    success: bool
    latency_ms: float
    response: str | None = None
    error: str | None = None


async def test_connector(
    definition: ConnectorDefinition,
    settings: ConnectorSettings[Any],
    *,
    pool: HttpPool,
    policy: CallPolicy,
    secrets: Collection[str] = (),  # noqa: PT028 - no test, see below
) -> ConnectorCheck:
    """Whether the agent is there and answers; raises nothing but a cancellation."""
    run = RunInfo(id=f"test-{uuid4().hex[:12]}")
    session = AgentSession(definition, settings, pool=pool, run=run, policy=policy, secrets=secrets)
    start = perf_counter()
    try:
        response = await session.probe()
    except ConnectorError as error:
        return ConnectorCheck(False, (perf_counter() - start) * 1000, error=str(error))
    return ConnectorCheck(True, (perf_counter() - start) * 1000, response[:_LONGEST_RESPONSE])


# Its name begins as test functions do; it is none.
test_connector.__test__ = False  # pyright: ignore[reportFunctionMemberAccess]


async def close_connectors(definitions: Iterable[ConnectorDefinition]) -> None:
    """Release what connectors hold; one that fails to is reported in the log and does not stop the others."""
    for definition in definitions:
        if definition.close_hook is None:
            continue
        try:
            await bounded(call(definition.close_hook), _CLOSE_SECONDS)
        except TimeLimitExceeded:
            log.warning('Connector "%s" did not close within %g s', definition.type, _CLOSE_SECONDS)
        except Exception as error:
            log.warning('Connector "%s" failed to close: %s', definition.type, error)
