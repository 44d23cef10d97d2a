"""A stopped process, hung threads, a blocked loop: never the agent's fault, and the server tells of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_server import DROP, AgentServer, Answer, Recorded, says
from tests.support.api_server import Api, serving
from tests.support.command_line import evalstudio
from tests.support.projects import apply_project, make_project, scripted

from evalstudio import run_scenario
from evalstudio.base.concurrency import DaemonPool
from evalstudio.execution.workspace import open_workspace
from evalstudio.server import readiness
from evalstudio.storage.contract import Filters

SCENARIO = {
    "name": "talk",
    "script": ["hi"],
    "evaluators": [{"type": "regex", "config": {"pattern": "echo"}}],
}
STOPPED_SECONDS = 3.5


class StoppingAgent:
    """Stops the process that asks it first, hangs up on it, and lets it go on after a while."""

    def __init__(self) -> None:
        self.process: asyncio.subprocess.Process | None = None
        self.calls = 0

    def __call__(self, request: Recorded) -> Answer:
        self.calls += 1
        if self.calls > 1:
            return says("echo")
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)
        threading.Timer(STOPPED_SECONDS, os.kill, (self.process.pid, signal.SIGCONT)).start()
        return DROP


async def test_what_a_stopped_process_missed_is_tried_again_and_nobody_is_blamed(tmp_path: Path) -> None:
    agent = StoppingAgent()
    async with AgentServer(agent) as server:
        config = make_project(tmp_path / "p", [scripted("talk", "hi")])
        http: dict[str, Any] = {"name": "agent", "type": "http", "baseUrl": server.url}
        http["config"] = {"responsePath": "message", "timeoutSeconds": 2, "retry": {"attempts": 1}}
        text = (tmp_path / "p" / "evals.json").read_text()
        definitions: dict[str, Any] = json.loads(text) | {"connectors": [http]}
        (tmp_path / "p" / "evals.json").write_text(json.dumps(definitions))
        apply_project(config)
        agent.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "evalstudio", "eval", "run", "all"), cwd=tmp_path / "p"
        )
        assert await agent.process.wait() == 0
    assert agent.calls == 2
    async with open_workspace(config) as workspace:
        (run,) = (await workspace.store.runs(Filters())).items
    assert (run.attempt, run.result.outcome if run.result else None) == (2, "pass")
    shown = evalstudio("run", "show", run.id, "--attempt", "1", cwd=tmp_path / "p").stdout
    assert "was stopped for" in " ".join(shown.split())
    assert "fault of the system" in shown
    refused = evalstudio("run", "show", run.id, "--attempt", "3", cwd=tmp_path / "p")
    assert refused.returncode != 0
    assert "attempt" in refused.stderr


SCRIPT = """
import asyncio, sys
from evalstudio import run_scenario

fast = {"type": "latency-budget", "config": {"maxMs": 2500}}
scenario = {"name": "t", "script": ["hi"], "evaluators": [fast]}
agent = {"type": "http", "baseUrl": sys.argv[1], "config": {"responsePath": "message", "timeoutSeconds": 2}}
result = asyncio.run(run_scenario(scenario, agent))
print(result.outcome, result.reason)
"""


async def test_an_answer_that_came_while_the_process_was_stopped_counts_in_time() -> None:
    processes: list[asyncio.subprocess.Process] = []

    def stop(request: Recorded) -> Answer:
        os.kill(processes[0].pid, signal.SIGSTOP)
        threading.Timer(STOPPED_SECONDS, os.kill, (processes[0].pid, signal.SIGCONT)).start()
        return Answer(json={"message": "echo"}, delay=0.2)

    async with AgentServer(stop) as server:
        command = (sys.executable, "-c", SCRIPT, server.url)
        processes.append(await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE))
        printed, _ = await processes[0].communicate()
    assert printed.decode().startswith("pass"), printed


async def test_hung_agents_keep_a_healthy_one_from_nothing() -> None:
    release, hanging = threading.Event(), threading.Semaphore(0)

    def hung(messages: Any) -> str:
        hanging.release()
        release.wait(60)
        return "echo"

    tasks = [asyncio.create_task(run_scenario(SCENARIO, hung)) for _ in range(64)]
    try:
        for _ in tasks:
            await asyncio.to_thread(hanging.acquire)
        healthy = await run_scenario(SCENARIO, lambda messages: "echo")
        assert healthy.outcome == "pass"
    finally:
        release.set()
    assert {result.outcome for result in await asyncio.gather(*tasks)} == {"pass"}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncGenerator[Api]:
    async with serving(make_project(tmp_path / "project", []), processor=True) as served:
        yield served


async def told(api: Api, fits: Callable[[str], bool]) -> str:
    """What /api/ready says, once it fits."""
    async with asyncio.timeout(20):
        while True:
            answer = await api("GET", "/api/ready")
            if fits(answer.text):
                assert answer.status == (200 if answer.json == {"status": "ready"} else 503)
                return answer.text
            await asyncio.sleep(0.05)


class TestReadiness:
    async def test_tells_of_calls_that_wait_for_a_thread(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pool, release = DaemonPool(1), threading.Event()
        monkeypatch.setattr(readiness, "_POOLS", (("an agent", pool),))
        monkeypatch.setattr(readiness, "_STARVED_SECONDS", 0.3)
        calls = [asyncio.create_task(pool.run(lambda: release.wait(60))) for _ in range(2)]
        await told(api, lambda text: "A call of an agent has been waiting for a thread" in text)
        release.set()
        await asyncio.gather(*calls)
        await told(api, lambda text: '"ready"' in text)

    async def test_tells_of_a_loop_that_stood_still(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(readiness, "_STALLED_SECONDS", 0.3)
        monkeypatch.setattr(readiness, "_TOLD_SECONDS", 2.0)
        await told(api, lambda text: '"ready"' in text)
        time.sleep(1.2)  # noqa: ASYNC251 - the loop is to stand still
        await told(api, lambda text: "Nothing was done for" in text)
        monkeypatch.setattr(readiness, "_STALLED_SECONDS", 60.0)
        await told(api, lambda text: '"ready"' in text)

    async def test_tells_of_a_database_that_does_not_answer(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def hang(store: Any) -> int:
            await asyncio.sleep(60)
            return 0

        monkeypatch.setattr(readiness, "_DATABASE_SECONDS", 0.1)
        monkeypatch.setattr(type(api.studio.store), "last_event_id", hang)
        await told(api, lambda text: "The database did not answer within 0.1 s" in text)

    async def test_tells_of_a_processor_that_stopped(self, api: Api) -> None:
        await told(api, lambda text: '"ready"' in text)
        api.studio.processing.ask_to_stop()
        await told(api, lambda text: "The run processor has stopped" in text)
