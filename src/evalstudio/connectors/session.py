"""One run's connection to one agent: calls with limits and retries, answers in one shape, errors in words.

Whatever a connector's function does, what comes out is a reply, a ``ConnectorError`` or a cancellation.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import random
from time import monotonic, perf_counter
from typing import Any, cast
from uuid import uuid4

from aiohttp import ClientError, ClientTimeout

from ..base.addresses import shown_address
from ..base.concurrency import TimeLimitExceeded, WorkAborted, blocking, bounded
from ..base.json_text import json_text
from ..base.redaction import Redaction, secrets_sent
from ..base.references import UnsetVariable, resolve, values_of
from ..base.traces import described, trace_of
from ..messages import Message
from .connection import AgentConnection, CallPolicy
from .contract import (
    ConnectorContext,
    ConnectorDefinition,
    ConnectorError,
    ConnectorSettings,
    Headers,
    RunInfo,
    merge_headers,
)
from .exchange import explain
from .http_pool import HttpPool
from .replies import AgentReply, read_reply

log = logging.getLogger("evalstudio")

_CLOSE_SECONDS = 10.0
_LONGEST_DETAIL = 2_000
_LONGEST_RESPONSE = 2_000


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
    ) -> None:
        self.definition = definition
        self.run = run
        self._settings = settings
        self._pool = pool
        self._extra = extra_headers or {}
        self._policy = (policy or CallPolicy()).for_config(settings.config)
        self._opened: tuple[ConnectorSettings[Any], Headers, AgentConnection] | None = None

    async def setup(self) -> None:
        """Prepare the agent for the run, where its connector has a hook for that."""
        if self.definition.setup_hook is not None:
            await self._attempt(self.definition.setup_hook, self._context((), ()))

    async def invoke(self, messages: Sequence[Message], new_messages: Sequence[Message]) -> AgentReply:
        """Carry the conversation to the agent and bring back what it adds."""
        ctx = self._context(messages, new_messages)
        returned, latency_ms = await self._attempt(self.definition.function, ctx)
        try:
            reply = read_reply(returned, latency_ms, self._policy.max_messages)
        except ConnectorError as error:
            raise self._named(error) from None
        self.run.thread_id = reply.thread_id = reply.thread_id or self.run.thread_id
        self.run.thread_message_count += len(new_messages) + len(reply.messages)
        self.run.turn += 1
        return reply

    async def state(self) -> dict[str, Any] | None:
        """The agent's end state, where its connector has a hook for that."""
        if self.definition.state_hook is None:
            return None
        state, _ = await self._attempt(self.definition.state_hook, self._context((), ()))
        if state is None or isinstance(state, dict):
            return cast("dict[str, Any] | None", state)
        kind = type(state).__name__
        raise self._named(ConnectorError(f"its state hook must return a dict, not a {kind}"))

    async def probe(self) -> str:
        """Find out whether the agent is there: by the test hook, else by saying hello."""
        if self.definition.test_hook is None:
            hello = [Message(role="user", content="Hello")]
            return _reply_text((await self.invoke(hello, hello)).messages)
        answer, _ = await self._attempt(self.definition.test_hook, self._context((), ()))
        if answer is False:
            raise self._named(ConnectorError("its test says that the agent is not usable"))
        return "" if answer is None or answer is True else str(answer)

    def _context(self, messages: Sequence[Message], new_messages: Sequence[Message]) -> ConnectorContext[Any]:
        if self._opened is None or self._opened[2].http.closed:
            try:
                self._opened = self._open()
            except UnsetVariable as error:
                raise self._named(ConnectorError(str(error))) from None
        settings, extra, connection = self._opened
        return ConnectorContext(settings, list(messages), list(new_messages), self.run, extra, connection)

    def _open(self) -> tuple[ConnectorSettings[Any], Headers, AgentConnection]:
        """Look up what is referred to, once for all calls of the run."""
        settings = self._settings
        base_url = resolve(settings.base_url.strip(), "baseUrl")
        headers, extra = _resolved(settings.headers), _resolved(self._extra)
        sent = merge_headers(headers, extra)
        referred = values_of(settings.base_url, *settings.headers.values(), *self._extra.values())
        connection = AgentConnection(
            http=self._pool.client(),
            timeout=ClientTimeout(total=None, sock_connect=self._policy.connect_seconds),
            headers=merge_headers({"Content-Type": "application/json", "Accept": "application/json"}, sent),
            policy=self._policy,
            address=shown_address(settings.base_url.strip()),
            redact=Redaction.of(referred | secrets_sent(base_url, headers | extra)),
        )
        return replace(settings, base_url=base_url, headers=headers), extra, connection

    async def _attempt(
        self, function: Callable[..., Any], ctx: ConnectorContext[Any]
    ) -> tuple[object, float]:
        """Call until it succeeds or trying again makes no sense; the time is the last attempt's."""
        policy = self._policy
        end = monotonic() + policy.whole_seconds
        tries = 0
        while True:
            tries += 1
            seconds = min(policy.timeout_seconds, end - monotonic())
            ctx.connection.sent_at = None
            start = perf_counter()
            try:
                returned = await bounded(call(function, ctx), seconds)
                return returned, self._seconds_taken(ctx.connection, start) * 1000
            except TimeLimitExceeded:
                late = ConnectorError(f"{self._place} did not answer within {seconds:.3g} s (timeoutSeconds)")
                raise self._named(late, tries) from None
            except ConnectorError as error:
                failure, cause = error, error.__cause__
            except Exception as error:
                failure, cause = self._as_connector_error(error), error
            wait = policy.wait_before(tries, failure.retry_after, random())
            if not failure.again or tries > policy.retries or monotonic() + wait >= end:
                raise self._named(failure, tries, cause) from cause
            await asyncio.sleep(wait)

    @staticmethod
    def _seconds_taken(connection: AgentConnection, start: float) -> float:
        """What the agent took, in seconds: from the request that was sent to the last data that came in.

        Where that is not known, it is the whole call. What this process was busy with in between is not
        the agent's.
        """
        if connection.received_at <= start:
            return perf_counter() - start
        return connection.received_at - (connection.sent_at or start)

    @property
    def _place(self) -> str:
        return shown_address(self._settings.base_url.strip()) or "it"

    def _as_connector_error(self, error: Exception) -> ConnectorError:
        """What a connector's function raised, as our own error."""
        assert self._opened is not None
        if isinstance(error, ClientError):
            return explain(error, self._opened[2], self._place)
        if isinstance(error, WorkAborted):
            return ConnectorError(f"it {error}")
        return ConnectorError(described(error), again=isinstance(error, ConnectionError))

    def _named(
        self, error: ConnectorError, tries: int = 1, cause: BaseException | None = None
    ) -> ConnectorError:
        """The error with the connector's name before it and nothing secret in it."""
        redact = self._opened[2].redact if self._opened else Redaction()
        detail = redact(str(error))[:_LONGEST_DETAIL] + (f" (tried {tries} times)" if tries > 1 else "")
        plugin = f" (plugin {self.definition.plugin})" if self.definition.plugin else ""
        named = ConnectorError(
            f'Connector "{self.definition.type}"{plugin}: {detail}',
            again=error.again,
            retry_after=error.retry_after,
        )
        if cause is not None and not isinstance(cause, ClientError | WorkAborted):
            named.traceback = trace_of(cause, redact)
        return named


def _resolved(headers: Headers) -> dict[str, str]:
    return {name: resolve(value, f"the header {name}") for name, value in headers.items()}


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
    definition: ConnectorDefinition, settings: ConnectorSettings[Any], *, pool: HttpPool, policy: CallPolicy
) -> ConnectorCheck:
    """Whether the agent is there and answers; raises nothing but a cancellation."""
    run = RunInfo(id=f"test-{uuid4().hex[:12]}")
    session = AgentSession(definition, settings, pool=pool, run=run, policy=policy)
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


def _is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it only makes a coroutine: functions and objects with an async ``__call__``."""
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & inspect.CO_COROUTINE:
        return True
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - asks what kind it is, not whether it is there
    )


async def call(function: Callable[..., Any], *arguments: Any) -> object:
    """The function's answer; what blocks runs in a worker thread."""
    if _is_async(function):
        returned: object = function(*arguments)
    else:
        returned = await blocking.run(lambda: function(*arguments))
    return await cast(Awaitable[object], returned) if inspect.isawaitable(returned) else returned
