"""What a judge call costs: ours beside bare aiohttp, the same requests to the same local server."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time

import aiohttp
from pydantic import BaseModel

from evalstudio.llm import Llm, LlmSettings
from evalstudio.messages import Message

from .measuring import ROUNDS, BenchmarkLine

CALLS = 300
AT_ONCE = 8
MOST_RATIO = 1.5
ANSWER = json.dumps({"reasoning": "It did.", "met": True})
SERVER = f"""
import asyncio, json
from aiohttp import web

BODY = json.dumps({{"choices": [{{"index": 0, "finish_reason": "stop", "message": {{"role": "assistant",
    "content": {ANSWER!r}}}}}], "usage": {{"prompt_tokens": 10, "completion_tokens": 5}}}}).encode()

async def answer(request):
    await request.read()
    return web.Response(body=BODY, content_type="application/json")

async def main():
    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


class Verdict(BaseModel):
    reasoning: str
    met: bool


# What any judge has to send, so that both send the same.
FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "Verdict", "schema": Verdict.model_json_schema(), "strict": True},
}
MESSAGES = [
    Message(role="system", content="You judge."),
    Message(role="user", content="Was the flight booked? " + "The agent said so. " * 50),
]


def measure() -> list[BenchmarkLine]:
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        ours, floor = asyncio.run(_compared(url))
    finally:
        server.kill()
        server.wait()
    return [
        BenchmarkLine(
            f"{CALLS} judge calls, {AT_ONCE} at once, CPU of ours",
            f"{ours * 1000 / CALLS:.2f} ms each",
            f"{floor * 1000 / CALLS:.2f} ms bare aiohttp",
            f"{ours / floor:.2f} × of at most {MOST_RATIO} ×",
            ours <= MOST_RATIO * floor,
        )
    ]


async def _compared(url: str) -> tuple[float, float]:
    """CPU seconds of this process, in turns: the machine is the same for both."""
    settings = {"provider": "local", "baseUrl": url, "models": {"evaluation": "judge"}}
    async with Llm(LlmSettings.model_validate(settings)) as llm, aiohttp.ClientSession() as session:

        async def judge() -> None:
            assert (await llm.answer(MESSAGES, Verdict)).value.met

        async def bare() -> None:
            sent = [{"role": message.role, "content": message.content} for message in MESSAGES]
            body = {"model": "judge", "messages": sent, "temperature": 0, "response_format": FORMAT}
            async with session.post(f"{url}/chat/completions", json=body) as response:
                content = (await response.json())["choices"][0]["message"]["content"]
                assert Verdict.model_validate_json(content).met

        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(ROUNDS + 1):
            for taken, call in zip(times, (judge, bare), strict=True):
                taken.append(await _cpu_seconds(call))
    # The first round opens connections and builds schemas.
    ours, floor = (statistics.median(taken[1:]) for taken in times)
    return ours, floor


async def _cpu_seconds(call: object) -> float:
    left = iter(range(CALLS))

    async def work() -> None:
        for _ in left:
            await call()  # pyright: ignore

    start = time.process_time()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return time.process_time() - start
