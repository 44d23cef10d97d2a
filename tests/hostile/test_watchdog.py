"""A server whose agents do their worst: it goes on answering, and ends when it is told to."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.hostile.test_bounds import BRANCHES, doubling
from tests.support.api_server import ServerProcess
from tests.support.projects import apply_project, make_project

HOSTILE_AGENT = '''
import json

from evalstudio import ConnectorContext, define_connector

CALL = {"id": "1", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 1}'}}
ANSWERS = {
    "number": "5",
    "branches": json.dumps([{"k1": 1, "x": "y" * 20, "z": number} for number in range(SIZE // 40)]),
    "words": "term59999x\u00e9 term00001 " * (SIZE // 22),
    "calls": {"role": "assistant", "content": "x", "tool_calls": [CALL] * min(20_000, SIZE // 60)},
}


@define_connector(type="test-agent")
async def test_agent(ctx: ConnectorContext):
    """An agent that answers with what takes long to look at."""
    return ANSWERS[ctx.messages[-1].text]
'''

TERMS = [f"term{number:05}" for number in range(60_000)]
PAYING = {"tool": "pay", "order": 1, "arguments": {"amount": 1}}
SCENARIOS: list[dict[str, Any]] = [
    {"script": ["number"], "evaluators": [{"type": "json-schema", "config": {"schema": doubling(41)}}]},
    {"script": ["branches"], "evaluators": [{"type": "json-schema", "config": {"schema": BRANCHES}}]},
    {"script": ["calls"], "evaluators": [{"type": "tool-usage", "config": {"rules": [PAYING] * 3}}]},
    {
        "script": ["words"],
        "evaluators": [
            {"type": "toxicity", "config": {"toxicTerms": TERMS}},
            {"type": "sentiment"},
            {"type": "regex", "config": {"pattern": r"(?=t)(?:[a-z0-9é]+ ?)+!"}},
        ],
    },
]


def hostile_server(folder: Path, *, runs: int, size: int, seconds: float) -> ServerProcess:
    """A server at work on hostile conversations."""
    scenarios = [{"name": f"hostile {number}", **scenario} for number, scenario in enumerate(SCENARIOS)]
    limits = {"evaluatorSeconds": seconds}
    config = make_project(
        folder, scenarios, repetitions=runs // len(scenarios), limits=limits, maxConcurrency=runs
    )
    (folder / "agent.py").write_text(HOSTILE_AGENT.replace("SIZE", str(size)))
    apply_project(config)
    server = ServerProcess(config)
    server.wait_ready(60)
    (wanted,) = asked(server, "/api/evals")["items"]
    asked(server, "/api/executions", {"evalId": wanted["id"]})
    return server


def asked(server: ServerProcess, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} if data else {}
    request = urllib.request.Request(server.url + path, data, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def health_seconds(server: ServerProcess) -> float:
    start = time.perf_counter()
    assert asked(server, "/api/health")
    return time.perf_counter() - start


def counts(server: ServerProcess) -> dict[str, int]:
    (execution,) = asked(server, "/api/executions")["items"]
    return execution["counts"]


def children_of(pid: int) -> list[int]:
    """The processes that have this parent."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if int(parent) == pid:
                found.append(int(folder.name))
    return found


def is_there(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 30
    while any(map(is_there, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_there, pids))


def test_health_answers_beside_hostile_conversations_and_sigterm_ends_it(tmp_path: Path) -> None:
    server = hostile_server(tmp_path, runs=8, size=400_000, seconds=600)
    try:
        while not (workers := children_of(server.process.pid)) or not counts(server)["running"]:
            time.sleep(0.05)
        for _ in range(20):
            assert asked(server, "/api/health")
        assert counts(server)["running"]
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        wait_until_gone(workers)
    finally:
        if server.process.poll() is None:
            server.kill()


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_twenty_at_full_size_leave_health_quick_and_the_end_prompt(tmp_path: Path, number: int) -> None:
    server = hostile_server(
        tmp_path, runs=20, size=3_600_000, seconds=float(os.environ.get("HOSTILE", "600"))
    )
    try:
        while not children_of(server.process.pid):
            time.sleep(0.05)
        taken: list[float] = []
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and counts(server)["running"]:
            for _ in range(10):
                taken.append(health_seconds(server))
                time.sleep(0.02)
        taken.sort()
        p99 = taken[len(taken) * 99 // 100]
        print(f"\n{len(taken)} answers, p99 {p99 * 1000:.0f} ms, longest {taken[-1]:.2f} s")
        assert len(taken) > 100
        assert p99 < 0.1
        assert taken[-1] < 2
        assert counts(server)["running"]
        workers = children_of(server.process.pid)
        server.process.send_signal(number)
        # Far less than the evaluators at work may still take.
        server.process.wait(60)
        wait_until_gone(workers)
    finally:
        if server.process.poll() is None:
            server.kill()
