"""A disk that is full while telemetry comes in: nothing acknowledged is lost, and space is all it takes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import Api, ServerProcess, serving
from tests.support.intake import JSON, chat_span, intake_project, judged_conversations, request_of, send

from evalstudio.execution import receiving
from evalstudio.server import readiness
from evalstudio.storage.transaction import Transaction

_BATCH = 20


def batch(number: int) -> list[dict[str, Any]]:
    """Spans of a conversation that do not become small by packing them."""
    spans = range(number * _BATCH, (number + 1) * _BATCH)
    return [chat_span(number + 1, one + 1, conversation=f"c{number}", answer=_noise()) for one in spans]


def _noise() -> str:
    return os.urandom(4_000).hex()


async def limit_pages(api: Api, more: int) -> None:
    """Leave the database room for so many more pages, at the connection that writes."""

    def limit(unit: Transaction) -> None:
        pages = unit.connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        unit.connection.exec_driver_sql(f"PRAGMA max_page_count={pages + more}")

    await api.studio.store.database.write(limit)


async def all_judged(api: Api) -> list[Any]:
    async with asyncio.timeout(30):
        while True:
            items = (await api.found("/api/conversations?limit=500"))["items"]
            if items and all(one["judged"] and one["status"] == "complete" for one in items):
                return items
            await asyncio.sleep(0.05)


async def ready(api: Api) -> Any:
    return (await api("GET", "/api/ready")).json


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(readiness, "_TROUBLE_SECONDS", 0.5)


@pytest.mark.usefixtures("hasty")
async def test_a_full_disk_asks_to_try_again_and_heals_when_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(intake_project(tmp_path, redact={"patterns": []}), processor=True, web=False) as api:
        await limit_pages(api, 60)
        acknowledged, number = list[int](), 0
        while True:
            body = json.dumps(request_of(*batch(number)))
            async with api.http.post(f"{api.url}/v1/traces", data=body, headers=JSON) as answer:
                if answer.status == 503:
                    assert int(answer.headers["Retry-After"]) > 0
                    assert "disk is full" in await answer.text()
                    break
                assert answer.status == 200
            acknowledged.append(number)
            number += 1
        assert "disk is full" in (await ready(api))["error"]["message"]
        status = await api.found("/api/status")
        assert "disk is full" in status["problem"]
        refused = await api(
            "POST", "/api/personas", {"name": "Ada", "systemPrompt": "Be Ada. " + "x" * 400_000}
        )
        assert (refused.status, "disk is full" in refused.error["message"]) == (503, True)
        assert len((await api.found("/api/conversations"))["items"]) == len(acknowledged)
        # Long enough for everything in the background to have had its turn.
        await asyncio.sleep(1.0)
        assert not [one for one in caplog.records if one.exc_info]
        assert len([one for one in caplog.records if "disk is full" in one.getMessage()]) <= 4

        await limit_pages(api, 1_000_000)
        for again in (number, number + 1):
            async with api.http.post(
                f"{api.url}/v1/traces", data=json.dumps(request_of(*batch(again))), headers=JSON
            ) as answer:
                assert answer.status == 200
            acknowledged.append(again)
        items = await all_judged(api)
        assert sorted((one["name"], one["spans"]) for one in items) == sorted(
            (f"c{one}", _BATCH) for one in acknowledged
        )
        async with asyncio.timeout(20):
            while await ready(api) != {"status": "ready"}:
                await asyncio.sleep(0.05)


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A disk of its own, of a size that is soon reached."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounting = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if mounting.returncode != 0:
        pytest.skip(f"a disk cannot be mounted here: {mounting.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@pytest.mark.soak
def test_a_server_lives_through_a_full_disk(small_disk: Path) -> None:
    """A real file system without a byte left, three times, with what is written around the database too."""
    server = ServerProcess(intake_project(small_disk, redact={"patterns": []}, quietSeconds=1.0))
    filler = small_disk / "filler"
    try:
        server.wait_ready()
        acknowledged, number = list[int](), 0
        for _ in range(3):
            _fill(filler)
            refusals = 0
            while refusals < 5:
                status = send(server.url, batch(number))
                assert status in (200, 503), server.log[-2000:]
                if status == 200:
                    acknowledged.append(number)
                refusals += status == 503
                number += 1
            assert server.process.poll() is None
            filler.unlink()
            server.wait_ready(60)
            assert send(server.url, batch(number)) == 200
            acknowledged.append(number)
            number += 1
        items = judged_conversations(server.url)
        stored = {one["name"]: one["spans"] for one in items}
        assert stored == {f"c{one}": _BATCH for one in acknowledged}
        assert "Traceback" not in server.log
        told = [line for line in server.log.splitlines() if "evalstudio.access" not in line]
        assert len(told) < 40, told[:60]
    finally:
        server.stop()


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * 512)
