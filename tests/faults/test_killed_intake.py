"""A server killed while spans stream in: what was acknowledged is in one conversation, judged at last."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import ServerProcess
from tests.support.intake import JSON, chat_span, intake_project, request_of

_BATCH = 40
_TRACES = 400


def send(url: str, spans: list[dict[str, Any]]) -> bool:
    """Send a batch; whether it was acknowledged."""
    request = urllib.request.Request(f"{url}/v1/traces", json.dumps(request_of(*spans)).encode(), JSON)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def found(url: str, path: str) -> Any:
    with urllib.request.urlopen(url + path, timeout=10) as answer:
        return json.loads(answer.read())


def all_conversations(url: str) -> list[Any]:
    items: list[Any] = []
    cursor = ""
    while True:
        page = found(url, f"/api/conversations?limit=500{cursor}")
        items += page["items"]
        if page["cursor"] is None:
            return items
        cursor = f"&cursor={page['cursor']}"


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.soak)])
def test_every_acknowledged_span_is_in_exactly_one_judged_conversation(tmp_path: Path, kills: int) -> None:
    config = intake_project(tmp_path, quietSeconds=0.2, redact={"patterns": []})
    acknowledged: set[int] = set()
    number = 0
    for _ in range(kills):
        server = ServerProcess(config)
        server.wait_ready()
        kill_at = time.monotonic() + 0.8
        while server.process.poll() is None:
            batch = list(range(number, number + _BATCH))
            number += _BATCH
            spans = [chat_span(one % _TRACES + 1, one + 1, conversation=f"c{one % _TRACES}") for one in batch]
            if send(server.url, spans):
                acknowledged.update(batch)
            if time.monotonic() > kill_at:
                os.kill(server.process.pid, 9)
                server.process.wait()
    server = ServerProcess(config)
    server.wait_ready()
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            conversations = all_conversations(server.url)
            if all(one["judged"] and one["status"] == "complete" for one in conversations):
                break
            time.sleep(0.2)
        assert all(one["judged"] for one in conversations)
        names = [one["name"] for one in conversations]
        assert len(names) == len(set(names))
        stored = sum(one["spans"] for one in conversations)
        # What was cut off without an answer may have been stored too.
        assert len(acknowledged) <= stored <= number
        for one in acknowledged:
            assert f"c{one % _TRACES}" in names
        # All that was acknowledged, sent again, is known already.
        listed = sorted(acknowledged)
        for start in range(0, len(listed), 500):
            again = [
                chat_span(one % _TRACES + 1, one + 1, conversation=f"c{one % _TRACES}")
                for one in listed[start : start + 500]
            ]
            assert send(server.url, again)
        assert sum(one["spans"] for one in all_conversations(server.url)) == stored
    finally:
        server.stop()
