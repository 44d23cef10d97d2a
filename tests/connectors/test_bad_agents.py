"""Whatever an agent does, the run gets an error a person understands, in bounded time and memory."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from tests.support.agent_server import (
    DROP,
    DROP_MID_BODY,
    EMPTY,
    HANG,
    HTML,
    HUGE,
    NOT_JSON,
    AgentServer,
    Answer,
    says,
)
from tests.support.sessions import QUICK, ask, session_of

from evalstudio.connectors.connection import CallPolicy
from evalstudio.connectors.contract import ConnectorError
from evalstudio.connectors.http import http_agent
from evalstudio.connectors.http_pool import HttpPool

MOST_GROWTH = 50_000_000


async def failure(pool: HttpPool, url: str, config: dict[str, Any] | None = None, **more: Any) -> str:
    with pytest.raises(ConnectorError) as caught:
        await ask(session_of(http_agent, pool, config, url=url, **more))
    assert str(caught.value).startswith('Connector "http": ')
    return str(caught.value)


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def raw_server(answer: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[str]:
    """A server below HTTP, for answers no web framework would send."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.readuntil(b"\r\n\r\n")
            await answer(writer)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        finished.set()

    finished = asyncio.Event()
    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await asyncio.wait_for(finished.wait(), 5)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (HTML, ["an HTML page instead of JSON", "Sign in", "Welcome back"]),
        (NOT_JSON, ["something that is not JSON", "{'message'"]),
        (EMPTY, ["an empty answer"]),
        (DROP_MID_BODY, ["broke off in the middle of its answer"]),
        (Answer(json={"message": []}), ["the answer holds no message"]),
        (Answer(json=[]), ["the answer holds no message"]),
        (Answer(json={}), ["wrong shape", "responsePath"]),
        (Answer(json={"reply": "hi"}), ["wrong shape", "set responsePath", '{"reply":"hi"}']),
        (Answer(json=None, body=b"null"), ["wrong shape"]),
        (Answer(json=42), ["no text, message or list of messages: 42"]),
        (Answer(json=[{"role": "user", "content": "echo"}]), ["wrong roles", '"user"']),
        (Answer(json=[{"role": "wizard", "content": "?"}]), ["wrong roles", '"wizard"']),
        (Answer(json=[{"role": "assistant", "content": 7}]), ["message 1 of the answer is not valid"]),
        (Answer(json=[{"content": "who says?"}]), ["message 1 of the answer is not valid: role"]),
        (Answer(json=[["nested"]]), ["message 1 of the answer is a list"]),
        (Answer(json={"message": ""}), ["neither text nor a tool call", "allowEmpty"]),
        (Answer(json={"success": False, "error": "no beds", "messages": ["Fine."]}), ["no beds"]),
        (Answer(json=[{"role": "assistant"}] * 1001), ["1,001 messages; the limit is 1,000"]),
        (Answer(body=b"[" * 100_000), ["not JSON"]),
        (Answer(body=b'\xff\xfe"utf-16"'), ["not JSON"]),
        (Answer(status=302, headers={"Location": "/elsewhere"}), ["a redirect (302), which is not followed"]),
        (
            Answer(status=400, json={"detail": "no such field"}),
            ["refused the request (400)", "no such field"],
        ),
        (Answer(status=401, json={}), ["refused the credentials (401), check the headers"]),
        (Answer(status=404, body=b""), ["has nothing at this address (404), check baseUrl and path"]),
        (Answer(status=204, body=b""), ["an empty answer"]),
    ],
)
async def test_a_bad_answer_is_named_and_never_asked_for_twice(
    pool: HttpPool, answer: Answer, words: list[str]
):
    async with AgentServer(answer) as agent:
        message = await failure(pool, agent.url)
        assert len(agent.requests) == 1
    for word in words:
        assert word in message
    assert len(message) < 1_000


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(status=503, body=b"", headers={"Retry-After": "0"}), ["failed (503)"]),
        (Answer(status=429, json={"error": "slow down"}), ["too many requests (429)", "slow down"]),
    ],
)
async def test_what_the_agent_asks_to_send_again_is_and_the_tries_are_counted(
    pool: HttpPool, answer: Answer, words: list[str]
):
    async with AgentServer(answer) as agent:
        message = await failure(pool, agent.url)
        assert len(agent.requests) == 3
    for word in [*words, "(tried 3 times)"]:
        assert word in message


MAY_HAVE_ACTED = [
    (Answer(status=500, json={"error": "boom"}), "500", ["failed (500)", "boom"]),
    (Answer(status=503, body=b""), "503", ["failed (503)"]),
    (DROP, "closed", ["closed the connection without an answer"]),
    (replace(DROP_MID_BODY, status=500), "5xx", ["failed (500)", "I was about"]),
]


@pytest.mark.parametrize(("answer", "cause", "words"), MAY_HAVE_ACTED)
async def test_what_the_agent_may_have_acted_on_is_sent_once(
    pool: HttpPool, answer: Answer, cause: str, words: list[str]
):
    async with AgentServer(answer) as agent:
        message = await failure(pool, agent.url)
        assert len(agent.requests) == 1
    for word in words:
        assert word in message
    assert "tried" not in message


@pytest.mark.parametrize(("answer", "cause", "words"), MAY_HAVE_ACTED)
async def test_what_the_agent_may_have_acted_on_is_sent_again_where_the_config_says_so(
    pool: HttpPool, answer: Answer, cause: str, words: list[str]
):
    async with AgentServer(answer) as agent:
        message = await failure(pool, agent.url, {"retry": {"attempts": 2, "on": [cause]}})
        assert len(agent.requests) == 2
    for word in [*words, "(tried 2 times)"]:
        assert word in message


async def test_a_timeout_is_tried_again_where_the_config_says_so(pool: HttpPool):
    async with AgentServer([HANG, says("ok")]) as agent:
        config = {"timeoutSeconds": 0.3, "retry": {"on": ["timeout"]}}
        reply = await ask(session_of(http_agent, pool, config, url=agent.url))
    assert reply.messages[0].text == "ok"
    assert "did not answer within 0.3 s" in str(reply.attempts[0].error)


async def test_a_refused_connection_says_that_nothing_listens(pool: HttpPool):
    message = await failure(pool, f"http://127.0.0.1:{closed_port()}")
    assert "refused the connection: nothing listens there. Is the agent running? (tried 3 times)" in message


async def test_an_unknown_host_says_so(pool: HttpPool):
    message = await failure(pool, "http://no-such-agent.invalid/chat")
    assert "http://no-such-agent.invalid/chat could not be reached" in message
    assert "host name is not known (DNS)" in message


@pytest.mark.parametrize("url", ["", "not an address", "ftp://x", "http://", "http://[::1", "http://a b"])
async def test_an_unusable_address_says_so(pool: HttpPool, url: str):
    message = await failure(pool, url)
    assert "baseUrl" in message or "not a usable address" in message


async def test_a_hanging_agent_ends_by_the_timeout_and_is_not_asked_again(pool: HttpPool):
    async with AgentServer(HANG) as agent:
        start = monotonic()
        message = await failure(pool, agent.url, {"timeoutSeconds": 0.3})
        assert monotonic() - start < 30
        assert len(agent.requests) == 1
    assert "did not answer within 0.3 s (timeoutSeconds)" in message


async def test_an_agent_that_drips_its_answer_ends_by_the_timeout(pool: HttpPool):
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with raw_server(drip) as url:
        start = monotonic()
        message = await failure(pool, url, {"timeoutSeconds": 0.4})
    assert monotonic() - start < 30
    assert "did not answer within 0.4 s" in message


async def test_an_agent_that_does_not_speak_http_is_reported(pool: HttpPool):
    async def babble(writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP ready\r\n")

    async with raw_server(babble) as url:
        message = await failure(pool, url)
    assert "did not answer in proper HTTP" in message
    assert "\n" not in message


async def test_endless_headers_are_refused(pool: HttpPool):
    async def ramble(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-More: " + b"y" * 10_000 + b"\r\n")
            await writer.drain()

    async with raw_server(ramble) as url:
        before = forget_peak()
        message = await failure(pool, url)
        assert peak_memory() - before < MOST_GROWTH
    assert "did not answer in proper HTTP" in message


def peak_memory() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def forget_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


@pytest.mark.parametrize("declared", [False, True])
async def test_an_answer_of_200_megabytes_is_refused_early_and_costs_little_memory(
    pool: HttpPool, declared: bool
):
    async with AgentServer(replace(HUGE, declared=declared)) as agent:
        before = forget_peak()
        message = await failure(pool, agent.url)
        grown = peak_memory() - before
        assert agent.streamed < 50_000_000
    assert "sent more than 10,000,000 bytes (maxResponseBytes)" in message
    assert grown < MOST_GROWTH


async def test_a_huge_error_page_is_read_only_as_far_as_it_is_shown(pool: HttpPool):
    async with AgentServer(replace(HUGE, status=400)) as agent:
        before = forget_peak()
        message = await failure(pool, agent.url)
        assert peak_memory() - before < MOST_GROWTH
    assert "refused the request (400): xxxx" in message
    assert len(message) < 1_000


async def test_a_small_answer_that_unfolds_into_a_huge_one_is_refused(pool: HttpPool):
    bomb = gzip.compress(b'"' + b"a" * 200_000_000 + b'"', 1)
    async with AgentServer(Answer(body=bomb, headers={"Content-Encoding": "gzip"})) as agent:
        before = forget_peak()
        message = await failure(pool, agent.url)
        assert peak_memory() - before < MOST_GROWTH
    assert "sent more than 10,000,000 bytes" in message


async def test_the_size_limit_can_be_set_and_an_answer_of_exactly_that_size_is_read(pool: HttpPool):
    body = b'"' + b"a" * 998 + b'"'
    async with AgentServer(Answer(body=body)) as agent:
        reply = await ask(session_of(http_agent, pool, {"maxResponseBytes": 1000}, url=agent.url))
        assert reply.messages[0].text == "a" * 998
        assert "more than 999 bytes" in await failure(pool, agent.url, {"maxResponseBytes": 999})


async def test_after_every_failure_the_next_call_works(pool: HttpPool):
    for bad in (HTML, DROP_MID_BODY, HUGE, DROP, Answer(status=500)):
        async with AgentServer([bad, says("still here")]) as agent:
            session = session_of(http_agent, pool, url=agent.url, policy=replace(QUICK, attempts=1))
            with pytest.raises(ConnectorError):
                await ask(session)
            assert (await ask(session)).messages[0].text == "still here"


async def test_a_retry_that_succeeds_is_an_answer_with_the_latency_of_that_attempt_alone(pool: HttpPool):
    slow_refusal = Answer(status=503, delay=1.2)
    async with AgentServer([slow_refusal, DROP, says("third time lucky")]) as agent:
        config = {"retry": {"on": ["5xx", "closed"]}}
        start = monotonic()
        reply = await ask(session_of(http_agent, pool, config, url=agent.url))
        all_attempts_ms = (monotonic() - start) * 1000
        assert len(agent.requests) == 3
    assert reply.messages[0].text == "third time lucky"
    assert reply.latency_ms <= all_attempts_ms - 1200


async def test_retry_after_is_honoured(pool: HttpPool):
    async with AgentServer([Answer(status=429, headers={"Retry-After": "0.4"}), says("ok")]) as agent:
        start = monotonic()
        await ask(session_of(http_agent, pool, url=agent.url))
    assert monotonic() - start >= 0.4


@pytest.mark.parametrize(
    ("asked", "most"), [("3600", "the 30 s that are waited at most"), ("20", "s that are left")]
)
async def test_a_retry_after_longer_than_we_wait_is_named_and_not_waited_for(
    pool: HttpPool, asked: str, most: str
):
    policy = replace(QUICK, total_seconds=10)
    async with AgentServer([Answer(status=429, headers={"Retry-After": asked}), says("ok")]) as agent:
        message = await failure(pool, agent.url, policy=policy)
        assert len(agent.requests) == 1
    assert f"asked to wait {asked} s, longer than the" in message
    assert most in message


async def test_all_attempts_together_stay_within_the_total_time(pool: HttpPool):
    policy = CallPolicy(timeout_seconds=0.5, total_seconds=1.0, attempts=100, backoff_seconds=0.05)
    policy = replace(policy, retry_on=frozenset({"503"}))
    async with AgentServer(Answer(status=503, delay=0.1)) as agent:
        message = await failure(pool, agent.url, policy=policy)
        # Each takes a tenth of the total time, and more on a busy machine.
        assert len(agent.requests) <= 11
    assert "failed (503)" in message


async def test_a_hundred_agents_failing_at_once_fail_each_on_its_own(pool: HttpPool):
    # All in one loop, with the server: on a busy machine the last is connected long after the first.
    patient = replace(QUICK, timeout_seconds=60.0, connect_seconds=60.0)
    async with AgentServer(lambda seen: says("ok") if seen.body["threadId"] else HTML) as agent:
        outcomes = await asyncio.gather(
            *(failure(pool, agent.url, policy=patient) for _ in range(100)),
        )
    assert [outcome for outcome in outcomes if "HTML page" not in outcome] == []
