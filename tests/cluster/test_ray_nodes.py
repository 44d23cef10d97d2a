"""Clusters of several nodes, which are processes of this machine: nodes that add up, and nodes that die."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import COMMAND
from tests.support.model_server import Recorded, Reply, threaded_server
from tests.support.postgres import PostgresServer
from tests.support.projects import AGENT, apply_project, make_project, scripted
from tests.support.scoring_files import SCORE, Folder, rows


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cluster whose nodes are processes of this machine; one of them to begin with."""
    for name, text in (
        ("RAY_AUTH_MODE", "token"),
        ("RAY_AUTH_TOKEN", "0" * 64),
        ("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0"),
        ("RAY_USAGE_STATS_ENABLED", "0"),
    ):
        monkeypatch.setenv(name, text)
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 << 20},
    )
    monkeypatch.setenv("RAY_ADDRESS", str(cluster.address))
    yield cluster
    cluster.shutdown()


def add_node(cluster: Any) -> Any:
    return cluster.add_node(num_cpus=1, object_store_memory=80 << 20)


@pytest.mark.soak
def test_nodes_that_wait_for_a_judge_add_up(tmp_path: Path, simulated: Any) -> None:
    """Four nodes judge at least 3.5 times as fast as one: nothing that they share holds them up."""
    moments: list[float] = []

    def judge(_: Recorded) -> Reply:
        moments.append(time.monotonic())
        return Reply(text=json.dumps({"reasoning": "fine", "score": 5}), delay=0.2)

    folder, rates = Folder(tmp_path), dict[int, float]()
    with threaded_server(judge) as server:
        models = {
            "provider": "local",
            "apiKey": "k",
            "baseUrl": server.url,
            "models": {"evaluation": "judge"},
        }
        judged = {"llmSettings": {**models, "timeoutSeconds": 120, "totalTimeoutSeconds": 600}}
        # Over the whole cluster; eight at once in each worker are the plan's.
        judged["llmSettings"]["concurrency"] = {"evaluation": 32}
        criteria = {
            "criteria": [{"name": "tone", "scale": "likert5"}],
            "evaluators": [{"type": "criteria-judge"}],
        }
        folder.plan({**judged, **criteria, "concurrency": 8})
        for nodes, count in ((1, 400), (4, 1600)):
            for _ in range(nodes - 1):
                add_node(simulated)
            simulated.wait_for_nodes()
            folder.dataset({**row, "context": {"long": "text " * 100}} for row in rows(count))
            moments.clear()
            arguments = [
                "score",
                "records.jsonl",
                "--plan",
                "plan.json",
                "-o",
                f"{nodes}.jsonl",
                "--on",
                "ray",
            ]
            subprocess.run([COMMAND, *arguments, "--workers", str(nodes)], cwd=tmp_path, check=True)
            assert len(moments) == count
            rates[nodes] = best_rate(moments, count // 2)
            print(f"\n{nodes} nodes: {rates[nodes]:.0f} judgements per second")
    assert rates[4] / rates[1] >= 3.5


def best_rate(moments: list[float], count: int) -> float:
    """How many calls per second there were while the most were under way."""
    ordered = sorted(moments)
    spans = [last - first for first, last in zip(ordered, ordered[count:], strict=False)]
    return count / min(spans)


# Takes a while, and says in which process it does.
SLOW = """
import os, time
from pathlib import Path
from evalstudio import define_evaluator

PLACE = Path({place!r})


@define_evaluator("slow", kind="assertion")
def slow(ctx):
    (PLACE / f"worker-{{os.getpid()}}").touch()
    time.sleep(0.01)
    return {{"success": True}}
"""


@pytest.mark.soak
def test_a_killed_node_costs_no_record(tmp_path: Path, simulated: Any) -> None:
    lost = [add_node(simulated), add_node(simulated)][0]
    simulated.wait_for_nodes()
    folder = Folder(tmp_path)
    folder.plan({"plugins": ["./slow.py"], "evaluators": [{"type": "slow"}]})
    (tmp_path / "slow.py").write_text(SLOW.format(place=str(tmp_path)))
    folder.dataset({**row, "context": {"long": "text " * 110}} for row in rows(20_000))
    arguments = [*SCORE, "--on", "ray", "--json"]
    with subprocess.Popen([COMMAND, *arguments], cwd=tmp_path, stdout=subprocess.PIPE) as command:
        wait_for_files(tmp_path, "worker-*", command)
        simulated.remove_node(lost, allow_graceful=False)
        out, _ = command.communicate()
    assert command.returncode == 0
    assert [one["recordId"] for one in folder.results()] == [f"r{n}" for n in range(20_000)]
    summary = json.loads(out)
    assert (summary["records"], summary["outcomes"]["pass"], summary["duplicateIds"]) == (20_000, 20_000, 0)


def wait_for_files(folder: Path, pattern: str, command: subprocess.Popen[bytes], count: int = 3) -> None:
    while len(list(folder.glob(pattern))) < count:
        assert command.poll() is None
        time.sleep(0.05)


@pytest.mark.soak
def test_live_runs_of_a_killed_node_are_taken_over(
    tmp_path: Path, simulated: Any, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = [add_node(simulated), add_node(simulated)][0]
    simulated.wait_for_nodes()
    # Workers have a copy of the project; what they tell goes to the folder of the test.
    agent = AGENT.replace("os.path.dirname(__file__)", repr(str(tmp_path)))
    agent = agent.replace(
        "    for word in", '    open(f"{FOLDER}/worker-{os.getpid()}", "w").close()\n    for word in'
    )
    storage = {"type": "postgres", "connectionString": "${DATABASE}"}
    monkeypatch.setenv("DATABASE", postgres.new_project_database())
    scenarios = [scripted("a", "hello", "wait=3", "thanks")]
    config = make_project(tmp_path, scenarios, repetitions=30, agent=agent, storage=storage, maxConcurrency=2)
    apply_project(config)
    arguments = ["eval", "run", "all", "--on", "ray", "--json"]
    with subprocess.Popen([COMMAND, *arguments], cwd=tmp_path, stdout=subprocess.PIPE) as command:
        wait_for_files(tmp_path, "worker-*", command)
        simulated.remove_node(lost, allow_graceful=False)
        out, _ = command.communicate()
    assert command.returncode == 0
    runs = json.loads(out)["runs"]
    assert (len(runs), {run["result"]["outcome"] for run in runs}) == (30, {"pass"})
    assert any(run["attempt"] > 1 for run in runs)
