"""Servers killed while spans stream in: what was acknowledged is in one review, whichever server made it."""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import ServerProcess
from tests.support.intake import (
    chat_span,
    every_item,
    found,
    intake_project,
    judged_conversations,
    send,
    tool_span,
)
from tests.support.postgres import PostgresServer

_BATCH = 40
_CONVERSATIONS = 80
_PATIENCE = 120


def span(number: int) -> dict[str, Any]:
    """The first of each conversation is what was said, the others are calls of a tool, each with its id."""
    place = number % _CONVERSATIONS
    if number < _CONVERSATIONS:
        return chat_span(place + 1, number + 1, conversation=f"c{place}")
    return tool_span(place + 1, number + 1, f"call-{number}", conversation=f"c{place}")


class Sender(threading.Thread):
    """Sends as exporters do: what was not acknowledged goes again, here to whichever server answers."""

    def __init__(self, servers: list[ServerProcess]) -> None:
        super().__init__(daemon=True)
        self.servers = servers
        self.acknowledged = self.repeated = 0
        self.ending = threading.Event()

    def run(self) -> None:
        tries = 0
        while not self.ending.is_set():
            batch = self.next_batch()
            while send(self.servers[tries % len(self.servers)].url, batch) != 200:
                tries += 1
                self.repeated += 1
                time.sleep(0.02)
            tries += 1
            self.acknowledged += _BATCH

    def next_batch(self) -> list[dict[str, Any]]:
        return [span(one) for one in range(self.acknowledged, self.acknowledged + _BATCH)]

    def wait_for(self, more: int) -> None:
        goal = self.acknowledged + more
        while self.acknowledged < goal:
            assert self.is_alive()
            time.sleep(0.02)

    def stop(self) -> None:
        self.ending.set()
        self.join(120)
        assert not self.is_alive()


def make_monitor(server: ServerProcess) -> None:
    body = {"name": "All", "evaluators": [{"type": "regex", "config": {"pattern": "Hi"}}]}
    request = urllib.request.Request(
        f"{server.url}/api/monitors", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request, timeout=30).close()


def calls_in_reviews(url: str) -> Counter[str]:
    """How often each call of a tool is in a review."""
    calls: Counter[str] = Counter()
    for run in every_item(url, "/api/runs"):
        assert run["result"]["outcome"] == "pass"
        for message in found(url, f"/api/runs/{run['id']}")["messages"]:
            calls.update(call["id"] for call in message.get("tool_calls") or ())
    return calls


@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        ("sqlite", 1),
        pytest.param("sqlite", 20, marks=pytest.mark.soak),
        pytest.param("postgres", 20, marks=pytest.mark.soak),
    ],
)
def test_every_acknowledged_span_is_in_exactly_one_review(
    tmp_path: Path, kind: str, kills: int, request: pytest.FixtureRequest
) -> None:
    storage: dict[str, Any] | None = None
    if kind == "postgres":
        database: PostgresServer = request.getfixturevalue("postgres")
        storage = {"type": "postgres", "connectionString": database.new_database()}
    config = intake_project(tmp_path, storage, quietSeconds=0.2, redact={"patterns": []})
    servers = [ServerProcess(config)]
    pick, sender = random.Random(5), Sender(servers)
    try:
        servers[0].wait_ready(_PATIENCE)
        make_monitor(servers[0])
        servers.append(ServerProcess(config))
        servers[1].wait_ready(_PATIENCE)
        sender.start()
        for number in range(kills):
            sender.wait_for(_CONVERSATIONS)
            time.sleep(pick.uniform(0.05, 0.8))
            servers[number % 2].kill()
            if number + 1 < kills:
                servers[number % 2] = ServerProcess(config)
        last = servers[kills % 2]
        last.wait_ready(_PATIENCE)
        sender.stop()
        judged_conversations(last.url, _PATIENCE)
        assert send(last.url, sender.next_batch()) == 200
        sender.acknowledged += _BATCH
        conversations = judged_conversations(last.url, _PATIENCE)
        assert len(conversations) == _CONVERSATIONS
        assert sum(one["spans"] for one in conversations) == sender.acknowledged
        late = [one for one in conversations if one["lateSpans"]]
        assert len(late) >= _BATCH
        assert all(one["revision"] > 1 for one in late)
        expected = {f"call-{one}": 1 for one in range(_CONVERSATIONS, sender.acknowledged)}
        assert calls_in_reviews(last.url) == expected
        print(
            f"{kind}: {kills} kills, {sender.acknowledged:,} spans, {sender.repeated} batches repeated, "
            f"{sum(one['lateSpans'] for one in late):,} late in {len(late)} conversations"
        )
    finally:
        sender.ending.set()
        for server in servers:
            server.stop()
