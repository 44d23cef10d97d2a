"""A session turns whatever a connector's function does into a reply, a ConnectorError or a cancellation."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Any

import pytest
from tests.support.agent_server import AgentServer, says
from tests.support.sessions import QUICK, ask, connector_of, session_of, talk, user

from evalstudio.connectors.connection import CallPolicy
from evalstudio.connectors.contract import (
    ConnectorContext,
    ConnectorError,
    ConnectorResponse,
    ConnectorSettings,
    RunInfo,
    define_connector,
)
from evalstudio.connectors.http_pool import HttpPool
from evalstudio.connectors.session import AgentSession, close_connectors, test_connector
from evalstudio.messages import Message, TokensUsage

Context = ConnectorContext[Any]


def returning(value: object) -> Callable[[Context], Any]:
    async def agent(ctx: Context) -> Any:
        return value

    return agent


def raising(error: BaseException) -> Callable[[Context], Any]:
    async def agent(ctx: Context) -> Any:
        raise error

    return agent


@pytest.mark.parametrize(
    ("returned", "texts"),
    [
        ("Hello", ["Hello"]),
        ("Grüße 🎉\u0000", ["Grüße 🎉\u0000"]),
        (Message(role="assistant", content="Hello"), ["Hello"]),
        ({"role": "assistant", "content": "Hello"}, ["Hello"]),
        ({"content": "Hello"}, ["Hello"]),
        (["Hello", "again"], ["Hello", "again"]),
        ([Message(role="assistant", content="A"), {"role": "tool", "content": "B"}], ["A", "B"]),
        (({"role": "system", "content": "A"}, "B"), ["A", "B"]),
        ({"messages": [{"role": "assistant", "content": "Hello"}]}, ["Hello"]),
        (ConnectorResponse([{"role": "assistant", "content": "Hello"}]), ["Hello"]),
    ],
)
async def test_every_sensible_return_is_a_reply(pool: HttpPool, returned: object, texts: list[str]):
    reply = await ask(session_of(connector_of(returning(returned)), pool))
    assert [message.text for message in reply.messages] == texts


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "returned nothing"),
        ([], "the answer holds no message"),
        (ConnectorResponse([]), "the answer holds no message"),
        (ConnectorResponse("hello"), "messages must be a list, not a str"),  # pyright: ignore[reportArgumentType]
        (ConnectorResponse(None), "messages must be a list, not nothing"),  # pyright: ignore[reportArgumentType]
        (42, "returned an int"),
        (True, "returned a bool"),
        (b"bytes", "returned a bytes"),
        (object(), "returned an object"),
        ({}, "no message (its keys: none)"),
        ({"reply": "hi"}, "no message (its keys: reply)"),
        ([None], "message 1 of the answer is nothing"),
        ([{"role": "assistant"}, 3], "message 2 of the answer is an int"),
        (user("an echo"), 'wrong roles: message 1 of the answer has the role "user"'),
        (["a"] * 1001, "1,001 messages; the limit is 1,000"),
        (ConnectorResponse(["x"], latency_ms=float("nan")), "latency_ms must be"),  # pyright: ignore[reportArgumentType]
        ({"messages": [{"role": "tool"}], "latencyMs": -1}, "latency_ms must be"),
        ({"messages": [{"role": "tool"}], "threadId": ["x"]}, "thread_id must be a text"),
        ({"messages": [{"role": "tool"}], "metadata": "x"}, "metadata must be an object"),
    ],
)
async def test_nonsense_is_refused_in_words(pool: HttpPool, returned: object, words: str):
    with pytest.raises(ConnectorError) as caught:
        await ask(session_of(connector_of(returning(returned), "booking"), pool))
    assert str(caught.value).startswith('Connector "booking": ')
    assert words in str(caught.value)


async def test_what_a_connector_reports_is_kept(pool: HttpPool):
    response = ConnectorResponse(
        [{"role": "assistant", "tool_calls": [{"name": "find", "args": {"id": 1}, "id": "c1"}]}],
        latency_ms=12.5,
        tokens_usage={"prompt_tokens": 3, "completion_tokens": 4},
        thread_id="t-1",
        metadata={"model": "x"},
    )
    reply = await ask(session_of(connector_of(returning(response)), pool))
    assert reply.messages[0].tool_calls is not None
    assert reply.messages[0].tool_calls[0].function.arguments == '{"id":1}'
    assert reply.tokens_usage == TokensUsage(input_tokens=3, output_tokens=4, total_tokens=7)
    assert (reply.latency_ms, reply.thread_id, reply.metadata) == (12.5, "t-1", {"model": "x"})


async def test_the_latency_is_measured_where_none_is_given(pool: HttpPool):
    async def slow(ctx: Context) -> str:
        await asyncio.sleep(0.05)
        return "done"

    reply = await ask(session_of(connector_of(slow), pool))
    assert 45 <= reply.latency_ms < 500


async def test_the_run_is_kept_up_to_date_between_calls(pool: HttpPool):
    seen: list[tuple[int, str | None, int]] = []

    async def agent(ctx: Context) -> ConnectorResponse:
        seen.append((ctx.run.turn, ctx.run.thread_id, ctx.run.thread_message_count))
        return ConnectorResponse(
            [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}],
            thread_id="t-9" if ctx.run.turn == 1 else None,
        )

    run = RunInfo(id="r")
    _, replies = await talk(session_of(connector_of(agent), pool, run=run), "one", "two", "three")
    assert seen == [(1, None, 0), (2, "t-9", 3), (3, "t-9", 6)]
    assert (run.turn, run.thread_id, run.thread_message_count) == (4, "t-9", 9)
    assert [reply.thread_id for reply in replies] == ["t-9"] * 3


async def test_a_failed_call_leaves_the_run_as_it_was(pool: HttpPool):
    run = RunInfo(id="r")
    with pytest.raises(ConnectorError):
        await ask(session_of(connector_of(raising(ValueError("no"))), pool, run=run))
    assert (run.turn, run.thread_id, run.thread_message_count) == (1, None, 0)


async def test_a_connector_cannot_change_the_conversation_it_was_given(pool: HttpPool):
    async def greedy(ctx: Context) -> str:
        ctx.messages.clear()
        ctx.new_messages.append(user("more"))
        return "mine now"

    said = [user("Hi")]
    await session_of(connector_of(greedy), pool).invoke(said, said)
    assert len(said) == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("bad luck"), "ValueError: bad luck"),
        (KeyError("city"), "KeyError: 'city'"),
        (RuntimeError(), "RuntimeError"),
        (ConnectorError("no beds left"), 'Connector "mine": no beds left'),
        (SystemExit(3), "it tried to exit the program (3)"),
        (TimeoutError("own clock"), "TimeoutError: own clock"),
        (asyncio.CancelledError(), "it cancelled itself"),
        (StopAsyncIteration(), "StopAsyncIteration"),
    ],
)
async def test_every_exception_becomes_a_connector_error(pool: HttpPool, error: BaseException, words: str):
    calls: list[int] = []

    async def agent(ctx: Context) -> Any:
        calls.append(1)
        raise error

    with pytest.raises(ConnectorError) as caught:
        await ask(session_of(connector_of(agent), pool))
    assert words in str(caught.value)
    assert '"mine"' in str(caught.value)
    assert len(calls) == 1


async def test_the_original_exception_of_a_plugin_is_kept_as_the_cause(pool: HttpPool):
    error = ValueError("deep down")
    with pytest.raises(ConnectorError) as caught:
        await ask(session_of(connector_of(raising(error)), pool))
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [ConnectorError("busy", again=True), ConnectionRefusedError("nobody")])
async def test_a_connector_may_ask_for_another_attempt(pool: HttpPool, error: Exception):
    calls: list[int] = []

    async def agent(ctx: Context) -> str:
        calls.append(1)
        if len(calls) < 3:
            raise error
        return "at last"

    assert (await ask(session_of(connector_of(agent), pool))).messages[0].text == "at last"


async def test_a_connection_that_was_reset_may_have_reached_the_agent_and_is_not_tried_again(pool: HttpPool):
    calls: list[int] = []

    async def agent(ctx: Context) -> str:
        calls.append(1)
        raise ConnectionResetError("gone")

    with pytest.raises(ConnectorError, match="ConnectionResetError: gone"):
        await ask(session_of(connector_of(agent), pool))
    assert len(calls) == 1


async def test_an_error_of_a_megabyte_is_cut(pool: HttpPool):
    with pytest.raises(ConnectorError) as caught:
        await ask(session_of(connector_of(raising(ValueError("x" * 1_000_000))), pool))
    assert len(str(caught.value)) < 3_000


async def test_a_sync_function_runs_in_a_thread(pool: HttpPool):
    def agent(ctx: Context) -> str:
        time.sleep(0.1)
        return threading.current_thread().name

    session = session_of(connector_of(agent), pool)
    ticks = 0
    work = asyncio.ensure_future(ask(session))
    while not work.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert "worker" in work.result().messages[0].text
    assert ticks > 3


async def test_a_sync_function_may_return_a_coroutine(pool: HttpPool):
    async def later() -> str:
        return "later"

    def agent(ctx: Context) -> Any:
        return later()

    assert (await ask(session_of(connector_of(agent), pool))).messages[0].text == "later"


class Hanging:
    """Agents that do not answer until they are let go, and whether one was."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.answered = False

    async def patiently(self, ctx: Context) -> str:
        await asyncio.sleep(3600)
        return self._answer()

    def in_a_thread(self, ctx: Context) -> str:
        self.go.wait(60)
        return self._answer()

    async def stubbornly(self, ctx: Context) -> str:
        end = monotonic() + 60
        while not self.go.is_set() and monotonic() < end:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return self._answer()

    def _answer(self) -> str:
        self.answered = True
        return "too late"


@pytest.mark.parametrize("way", ["patiently", "in_a_thread", "stubbornly"])
async def test_a_hung_function_ends_by_the_timeout(pool: HttpPool, way: str):
    hanging = Hanging()
    connector = connector_of(getattr(hanging, way))
    try:
        with pytest.raises(
            ConnectorError, match=r'"mine": it did not answer within 0.2 s \(timeoutSeconds\)'
        ):
            await ask(session_of(connector, pool, policy=replace(QUICK, timeout_seconds=0.2)))
        assert not hanging.answered
    finally:
        hanging.go.set()


async def test_cancellation_passes_through_and_ends_the_call(pool: HttpPool):
    ended = asyncio.Event()

    async def agent(ctx: Context) -> str:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()
        return "never"

    task = asyncio.ensure_future(ask(session_of(connector_of(agent), pool)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_cancellation_while_waiting_to_try_again_passes_through(pool: HttpPool):
    agent = raising(ConnectorError("busy", again=True, retry_after=20))
    task = asyncio.ensure_future(ask(session_of(connector_of(agent), pool)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_hooks_prepare_the_run_and_read_its_end_state(pool: HttpPool):
    connector = connector_of(returning("ok"))
    told: list[str] = []

    @connector.setup
    async def prepare(ctx: Context) -> None:
        told.append(f"setup {ctx.run.id}")

    @connector.state
    def read(ctx: Context) -> dict[str, int]:
        return {"bookings": 1}

    session = session_of(connector, pool)
    await session.setup()
    await ask(session)
    assert await session.state() == {"bookings": 1}
    assert told == ["setup run-1"]


async def test_without_hooks_there_is_nothing_to_do(pool: HttpPool):
    session = session_of(connector_of(returning("ok")), pool)
    await session.setup()
    assert await session.state() is None


async def test_a_failing_hook_is_a_connector_error(pool: HttpPool):
    connector = connector_of(returning("ok"))
    connector.setup(raising(ValueError("no sandbox")))
    connector.state(returning(["not", "a", "dict"]))
    session = session_of(connector, pool)
    with pytest.raises(ConnectorError, match='"mine": ValueError: no sandbox'):
        await session.setup()
    with pytest.raises(ConnectorError, match="its state hook must return a dict, not a list"):
        await session.state()


async def test_testing_a_connector_says_hello(pool: HttpPool):
    async def agent(ctx: Context) -> str:
        return f"You said {ctx.new_messages[0].text}"

    check = await check_of(connector_of(agent), pool)
    assert (check.success, check.response, check.error) == (True, "You said Hello", None)
    assert check.latency_ms >= 0


async def test_testing_a_connector_uses_its_hook(pool: HttpPool):
    connector = connector_of(raising(AssertionError("not called")))
    connector.test(returning("healthy"))
    assert (await check_of(connector, pool)).response == "healthy"
    connector.test(returning(None))
    assert (await check_of(connector, pool)).success
    connector.test(returning(False))
    assert "not usable" in str((await check_of(connector, pool)).error)


async def test_testing_a_broken_connector_reports_and_does_not_raise(pool: HttpPool):
    check = await check_of(connector_of(raising(ValueError("down"))), pool)
    assert (check.success, check.response) == (False, None)
    assert check.error is not None
    assert check.error.startswith('Connector "mine": ValueError: down (tests/connectors/test_session.py:')


async def check_of(connector: Any, pool: HttpPool) -> Any:
    return await test_connector(connector, ConnectorSettings({}), pool=pool, policy=QUICK)


async def test_closing_reaches_every_connector_even_if_one_fails(caplog: pytest.LogCaptureFixture):
    closed: list[str] = []

    def made(name: str) -> Any:
        connector = define_connector(type=name)(returning("ok"))
        connector.close(lambda: closed.append(name))
        return connector

    async def fail() -> None:
        raise OSError("stuck")

    broken = connector_of(returning("ok"), "broken")
    broken.close(fail)
    await close_connectors([made("a"), connector_of(returning("ok")), broken, made("b")])
    assert closed == ["a", "b"]
    assert 'Connector "broken" failed to close: stuck' in caplog.text


async def test_persona_headers_win_over_the_connectors_whatever_their_case(
    pool: HttpPool, agent: AgentServer
):
    from evalstudio.connectors.http import http_agent

    session = session_of(
        http_agent,
        pool,
        url=agent.url,
        headers={"X-User": "nobody", "X-Team": "blue"},
        extra_headers={"x-user": "Ännchen".encode().decode("latin-1")},
    )
    await ask(session)
    assert agent.last.headers["x-team"] == "blue"
    assert "nobody" not in agent.last.headers["x-user"]


async def test_calls_of_many_sessions_do_not_disturb_each_other(pool: HttpPool, agent: AgentServer):
    from evalstudio.connectors.http import http_agent

    agent.answers = lambda seen: says(f"to {seen.body['messages'][0]['content']}")
    sessions = [session_of(http_agent, pool, url=agent.url) for _ in range(50)]
    replies = await asyncio.gather(*(ask(session, f"n{i}") for i, session in enumerate(sessions)))
    assert [reply.messages[0].text for reply in replies] == [f"to n{i}" for i in range(50)]


def test_a_session_needs_no_loop_to_be_made():
    AgentSession(
        connector_of(returning("ok")),
        ConnectorSettings({}),
        pool=HttpPool(),
        run=RunInfo(id="r"),
        policy=CallPolicy(),
    )
