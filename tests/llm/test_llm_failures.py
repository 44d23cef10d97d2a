"""Servers that refuse, fail, hang, drop the line or flood: what is tried again and what the person reads."""

from __future__ import annotations

import asyncio
import gzip
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from time import monotonic

import pytest
from tests.llm.opened import ASKED, KEY, MET, WAS_MET, Verdict, open_llm
from tests.support.model_server import DROP, HANG, ModelServer, Recorded, Reply, refusal

from evalstudio.llm import ModelError


async def test_retry_after_in_seconds_is_honoured_and_counted() -> None:
    replies = [refusal(429, "slow down", retry_after="1"), MET]
    async with ModelServer(replies) as server, open_llm(server) as llm:
        start = monotonic()
        assert (await llm.answer(ASKED, Verdict)).value == WAS_MET
        assert monotonic() - start >= 1
        used = llm.usage["evaluation"]
    assert used.retries == 1
    assert used.waited_seconds >= 1
    assert len(server.requests) == 2


async def test_retry_after_as_a_date_is_honoured() -> None:
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    async with ModelServer([refusal(429, retry_after=moment), "ok"]) as server, open_llm(server) as llm:
        start = monotonic()
        assert (await llm.chat(ASKED)).value == "ok"
    assert monotonic() - start >= 0.9


async def test_waiting_is_visible_while_it_lasts() -> None:
    async with ModelServer([refusal(429, retry_after="0.6"), "ok"]) as server, open_llm(server) as llm:
        task = asyncio.create_task(llm.chat(ASKED))
        seen = 0.0
        while not task.done():
            seen = max(seen, llm.usage["persona"].waiting_seconds)
            await asyncio.sleep(0.01)
        assert (await task).value == "ok"
        assert 0.3 < seen <= 0.8
        assert llm.usage["persona"].waiting_seconds == 0
        assert llm.usage["evaluation"].waiting_seconds == 0


@pytest.mark.parametrize("status", [500, 502, 503, 529])
async def test_a_server_error_is_tried_again(status: int) -> None:
    replies = [refusal(status, retry_after="0"), MET]
    async with ModelServer(replies) as server, open_llm(server) as llm:
        assert (await llm.answer(ASKED, Verdict)).value == WAS_MET
        assert llm.usage["evaluation"].retries == 1


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
async def test_tries_are_finite_and_the_libraries_add_none_of_their_own(provider: str) -> None:
    settings = {"maxRetries": 2, "maxTokens": 100, "models": {"persona": "claude-opus-4-8"}}
    failing = refusal(503, "try later", retry_after="0")
    async with ModelServer(failing) as server, open_llm(server, provider, **settings) as llm:
        with pytest.raises(ModelError, match=r"failed \(503\): try later \(gave up after 3 tries") as caught:
            await llm.chat(ASKED)
        assert llm.usage["persona"].retries == 2
    assert caught.value.status == 503
    assert len(server.requests) == 3


async def test_a_dropped_connection_is_tried_again() -> None:
    async with ModelServer([DROP, DROP, "ok"]) as server, open_llm(server) as llm:
        assert (await llm.chat(ASKED)).value == "ok"
    assert len(server.requests) == 3


async def test_nobody_listening_says_where_it_looked() -> None:
    async with ModelServer() as server:
        pass
    async with open_llm(server, maxRetries=1) as llm:
        with pytest.raises(ModelError, match=r"could not be reached: .*Check llmSettings.baseUrl"):
            await llm.chat(ASKED)


async def test_a_hanging_server_is_given_up_after_the_timeout() -> None:
    async with ModelServer(HANG) as server, open_llm(server, timeoutSeconds=0.3, maxRetries=0) as llm:
        start = monotonic()
        with pytest.raises(ModelError, match=r"did not answer within 0.3 s \(llmSettings.timeoutSeconds\)"):
            await llm.chat(ASKED)
    assert monotonic() - start < 30


async def test_a_hanging_server_is_tried_again_within_the_total_time() -> None:
    async with ModelServer([HANG, "ok"]) as server, open_llm(server, timeoutSeconds=0.3) as llm:
        assert (await llm.chat(ASKED)).value == "ok"


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_named_at_once_and_never_shown(provider: str, status: int) -> None:
    echo = refusal(status, f"Incorrect API key provided: {KEY}")
    settings = {"maxTokens": 100, "models": {"persona": "claude-opus-4-8"}}
    async with ModelServer(echo) as server, open_llm(server, provider, **settings) as llm:
        with pytest.raises(ModelError) as caught:
            await llm.chat(ASKED)
    assert f"the key was refused by {provider} at {server.root} ({status}): check llmSettings.apiKey" in str(
        caught.value
    )
    assert KEY not in str(caught.value) + repr(caught.value) + str(caught.value.raw)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, r"refused the request \(400\): status 400"),
        (402, r"has no credit left \(402\)"),
        (404, r'does not know the model "gpt-4o-mini" \(404\): check llmSettings.models'),
        (413, r"refused the request \(413\)"),
        (418, r"refused the request \(418\)"),
    ],
)
async def test_other_refusals_fail_at_once_in_plain_words(status: int, words: str) -> None:
    async with ModelServer(status) as server, open_llm(server) as llm:
        with pytest.raises(ModelError, match=words) as caught:
            await llm.chat(ASKED)
    assert caught.value.status == status
    assert len(server.requests) == 1


async def test_an_empty_account_is_not_waited_for() -> None:
    body = json.dumps({"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})
    async with ModelServer(Reply(status=429, body=body)) as server, open_llm(server) as llm:
        with pytest.raises(ModelError, match="no credit left"):
            await llm.chat(ASKED)
    assert len(server.requests) == 1


async def test_google_says_in_the_body_how_long_to_wait() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.7s"}]
    error = {
        "code": 429,
        "status": "RESOURCE_EXHAUSTED",
        "message": "check your plan and billing",
        "details": details,
    }
    full = Reply(status=429, body=json.dumps({"error": error}))
    async with ModelServer([full, "ok"]) as server, open_llm(server, "google") as llm:
        start = monotonic()
        assert (await llm.chat(ASKED)).value == "ok"
    assert monotonic() - start >= 0.7


async def test_google_refuses_a_key_with_400() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    error = {"code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid.", "details": details}
    refused = Reply(status=400, body=json.dumps({"error": error}))
    async with ModelServer(refused) as server, open_llm(server, "google") as llm:
        with pytest.raises(ModelError, match=r"the key was refused by google .*: check llmSettings\.apiKey"):
            await llm.chat(ASKED)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body="<html>Welcome</html>", headers={"Content-Type": "text/html"}),
        Reply(body="<html>Welcome</html>"),
        Reply(body=""),
        Reply(body="{}"),
        Reply(body="[]"),
        Reply(body="null"),
        Reply(body='{"choices": []}'),
        Reply(body='{"choices": [{"message": null}]}'),
        Reply(body=b"\xff\xfe\x00"),
    ],
)
async def test_a_reply_outside_the_protocol_is_an_error(reply: Reply) -> None:
    async with ModelServer(reply) as server, open_llm(server, maxRetries=0) as llm:
        with pytest.raises(ModelError) as caught:
            await llm.chat(ASKED)
    assert "openai at http://127.0.0.1" in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("status", [200, 500])
async def test_a_flood_is_not_read_to_its_end(status: int) -> None:
    flood = Reply(status=status, body=b"x" * 20_000_000)
    async with ModelServer(flood) as server, open_llm(server, maxRetries=0) as llm:
        with pytest.raises(ModelError, match="more than 8,000,000 bytes"):
            await llm.chat(ASKED)


async def test_a_flood_of_unknown_length_is_not_read_to_its_end() -> None:
    import aiohttp.web as web

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for _ in range(1000):
            await response.write(b" " * 10_000)
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", drip)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server = ModelServer()
    server.root = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with open_llm(server, maxRetries=0, maxResponseBytes=50_000) as llm:
        with pytest.raises(ModelError, match="more than 50,000 bytes"):
            await llm.chat(ASKED)
    await runner.cleanup()


async def test_a_compressed_bomb_is_not_unpacked() -> None:
    bomb = Reply(body=gzip.compress(b" " * 100_000_000), headers={"Content-Encoding": "gzip"})
    async with ModelServer(bomb) as server, open_llm(server, maxRetries=0) as llm:
        with pytest.raises(ModelError, match="compressed reply"):
            await llm.chat(ASKED)
    assert server.requests[0].headers["accept-encoding"] == "identity"


async def test_a_redirect_is_not_followed_with_the_key() -> None:
    async with ModelServer() as thief:
        away = Reply(status=307, body="", headers={"Location": f"{thief.url}/chat/completions"})
        async with ModelServer(away) as server, open_llm(server, maxRetries=0) as llm:
            with pytest.raises(ModelError, match="redirect"):
                await llm.chat(ASKED)
    assert thief.requests == []


async def test_no_more_calls_run_at_once_than_the_role_allows() -> None:
    concurrency = {"evaluation": 3, "persona": 2}
    slow = Reply(text=json.dumps(MET), delay=0.02)
    async with ModelServer(slow) as server, open_llm(server, concurrency=concurrency) as llm:
        await asyncio.gather(*(llm.answer(ASKED, Verdict) for _ in range(15)))
        assert server.peak == 3
        await asyncio.gather(
            *(llm.answer(ASKED, Verdict) for _ in range(15)), *(llm.chat(ASKED) for _ in range(15))
        )
        assert server.peak == 5


async def test_a_crowded_server_gets_fewer_calls_and_all_answers_arrive() -> None:
    """The server refuses whenever more than two calls are under way."""
    server = ModelServer()

    def crowded(_: Recorded) -> Reply:
        if server.in_flight > 2:
            return refusal(429, retry_after="0.05")
        return Reply(text="ok", delay=0.01)

    server.replies = crowded
    async with server, open_llm(server, concurrency={"persona": 8}, maxRetries=10) as llm:
        answers = await asyncio.gather(*(llm.chat(ASKED) for _ in range(60)))
        assert [answer.value for answer in answers] == ["ok"] * 60
        refused = llm.usage["persona"].retries
    assert 0 < refused < 60


async def test_closing_is_harmless_at_any_time() -> None:
    async with ModelServer("ok") as server:
        llm = open_llm(server)
        await llm.aclose()
        await llm.chat(ASKED)
        await llm.aclose()
        await llm.aclose()
