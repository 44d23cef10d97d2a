"""Two thousand spans of 4 kB a second, in batches of 500, into SQLite: nothing lost, memory flat."""

from __future__ import annotations

import asyncio
import os
import time
from io import BytesIO
from pathlib import Path

import pytest
from aiohttp import ClientSession
from tests.support.api_server import ServerProcess
from tests.support.intake import PROTOBUF, as_protobuf, chat_span, intake_project, request_of

_BATCH = 500
_PER_SECOND = 4
_ROOM_KB = 60_000


def batch(number: int) -> bytes:
    spans = [
        chat_span(
            number * 50 + one // 10 + 1,
            one + 1,
            conversation=f"conv-{number * 50 + one // 10}",
            said=[("user", f"Question {number}-{one}: " + f"{number * one:x} words of it " * 90)],
            answer=f"Answer {one}. " + "It is so. " * 240,
        )
        for one in range(_BATCH)
    ]
    return as_protobuf(request_of(*spans))


def resident_kb(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


async def stream(server: ServerProcess, seconds: float) -> tuple[int, list[int]]:
    """Send at the rate; how many spans were acknowledged, and how large the server was meanwhile."""
    acknowledged, sizes = 0, list[int]()
    async with ClientSession() as http:
        began, number = time.monotonic(), 0
        while time.monotonic() - began < seconds:
            body = batch(number)
            async with http.post(f"{server.url}/v1/traces", data=BytesIO(body), headers=PROTOBUF) as answer:
                assert answer.status in (200, 503), await answer.text()
                acknowledged += _BATCH if answer.status == 200 else 0
            number += 1
            sizes.append(resident_kb(server.process.pid))
            await asyncio.sleep(max(0.0, began + number / _PER_SECOND - time.monotonic()))
    return acknowledged, sizes


@pytest.mark.parametrize("seconds", [2.0, pytest.param(None, marks=pytest.mark.soak)])
async def test_the_promised_rate_is_taken(tmp_path: Path, seconds: float | None) -> None:
    full = seconds is None
    duration = float(os.environ.get("EVALSTUDIO_INTAKE_SECONDS", "600")) if seconds is None else seconds
    server = ServerProcess(intake_project(tmp_path, quietSeconds=5.0))
    try:
        await asyncio.to_thread(server.wait_ready)
        acknowledged, sizes = await stream(server, duration)
        assert acknowledged > 0
        if full:
            assert acknowledged >= 0.95 * duration * _BATCH * _PER_SECOND
            settled = max(sizes[: len(sizes) // 4])
            assert max(sizes) < settled + _ROOM_KB
        stored = await asyncio.to_thread(_stored, server)
        assert stored == acknowledged
    finally:
        server.stop()


def _stored(server: ServerProcess) -> int:
    import sqlite3

    database = server.folder / "data" / "evalstudio.db"
    with sqlite3.connect(database) as connection:
        (spans,) = connection.execute("SELECT count(*) FROM spans").fetchone()
        (counted,) = connection.execute("SELECT sum(spans) FROM conversations").fetchone()
    assert spans == counted
    return spans
