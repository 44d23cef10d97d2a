"""Ray at size: memory that does not grow, kills that cost nothing, nodes that add up.

``EVALSTUDIO_RAY_RECORDS`` is how many records are generated, about 600 bytes each; ten million by default.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.scoring.test_soak import PLAN
from tests.support.command_line import COMMAND
from tests.support.model_server import Recorded, Reply, threaded_server
from tests.support.scoring_files import Folder, rows

RECORDS = int(os.environ.get("EVALSTUDIO_RAY_RECORDS", "10000000"))
_FILLER = "The booking was made by telephone and confirmed by mail. " * 8
# Beyond what a driver needs at its start, whatever the size of the dataset.
_MOST_GROWTH_MB = 150


def write_records(path: Path, count: int) -> None:
    with open(path, "wb", buffering=1 << 20) as file:
        for number in range(count):
            said = f"your booking {number} is {'ready' if number % 3 else 'late, darn'}"
            row = {"id": f"r{number}", "response": said, "groundTruth": "your booking is ready"}
            file.write(orjson.dumps(row | {"prompt": _FILLER}) + b"\n")


def megabytes(process: int) -> int:
    """What a process has in memory now."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


def workers_of(driver: int) -> list[int]:
    """The actors of the cluster that a driver has started."""
    listing = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    lines = [line.split(None, 1) for line in listing.stdout.splitlines() if "ray::ScoringActor" in line]
    return [int(number) for number, _ in lines if _is_below(int(number), driver)]


def _is_below(process: int, ancestor: int) -> bool:
    while process > 1:
        if process == ancestor:
            return True
        try:
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def start(folder: Folder, *arguments: str) -> subprocess.Popen[str]:
    command = [
        COMMAND,
        "score",
        "records.jsonl",
        "--plan",
        "plan.json",
        "--workers",
        "2",
        "--json",
        *arguments,
    ]
    return subprocess.Popen(command, cwd=folder.path, stdout=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = process.communicate()
    assert process.returncode == 0, out
    return json.loads(out)


def wait_for_share(folder: Folder, process: subprocess.Popen[str], share: float) -> None:
    """Until so much of the dataset is scored."""
    size, shards = (folder.path / "records.jsonl").stat().st_size, folder.path / "ray.jsonl.shards"
    while True:
        done = [orjson.loads(one.read_bytes())["end"] for one in shards.glob("0*.json")]
        if done and max(done) >= size * share:
            return
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.1)


@pytest.mark.soak
def test_ten_million_records_survive_kills_in_flat_memory(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.plan(PLAN)
    write_records(tmp_path / "records.jsonl", RECORDS)
    first = start(folder, "-o", "ray.jsonl", "--on", "ray")
    wait_for_share(folder, first, 0.2)
    driver = megabytes(first.pid)
    os.kill(workers_of(first.pid)[0], signal.SIGKILL)
    wait_for_share(folder, first, 0.5)
    grown = megabytes(first.pid) - driver
    workers = [megabytes(one) for one in workers_of(first.pid)]
    first.kill()
    first.communicate()
    summary = finished(start(folder, "-o", "ray.jsonl", "--on", "ray", "--resume"))
    assert (summary["records"], summary["duplicateIds"]) == (RECORDS, 0)
    assert RECORDS * 0.3 < summary["resumed"] < RECORDS
    check_results(tmp_path / "ray.jsonl", RECORDS)
    print(f"\n{RECORDS:,} records: driver {driver} MB, grown by {grown} MB; workers {workers} MB")
    assert grown < _MOST_GROWTH_MB


def check_results(output: Path, count: int) -> None:
    """Every record once, in the order of the dataset."""
    number = -1
    with open(output, "rb") as file:
        for number, line in enumerate(file):
            assert line.startswith(b'{"recordId":"r%d","line":%d,' % (number, number + 1)), number
    assert number == count - 1


@pytest.mark.soak
def test_ray_keeps_up_with_processes(tmp_path: Path) -> None:
    """At least 0.8 of the throughput of ``--workers 2``; starting is left out of both."""
    folder, count = Folder(tmp_path), max(20_000, RECORDS // 10)
    folder.plan(PLAN)
    write_records(tmp_path / "records.jsonl", count)
    seconds = {}
    for on in ("local", "ray"):
        began = time.perf_counter()
        finished(start(folder, "-o", f"{on}-one.jsonl", "--on", on, "--limit", "1"))
        starting = time.perf_counter() - began
        began = time.perf_counter()
        finished(start(folder, "-o", f"{on}.jsonl", "--on", on))
        seconds[on] = time.perf_counter() - began - starting
        print(f"\n{on}: {count:,} records in {seconds[on]:.1f} s beside {starting:.1f} s to start")
    ratio = seconds["local"] / seconds["ray"]
    print(f"throughput on Ray: {ratio:.2f} of --workers 2")
    assert ratio >= 0.8


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
    yield cluster
    cluster.shutdown()


@pytest.mark.soak
def test_nodes_that_wait_for_a_judge_add_up(
    tmp_path: Path, simulated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four nodes judge at least 3.5 times as fast as one: nothing that they share holds them up."""
    moments: list[float] = []

    def judge(_: Recorded) -> Reply:
        moments.append(time.monotonic())
        return Reply(text=json.dumps({"reasoning": "fine", "score": 5}), delay=0.2)

    folder, rates = Folder(tmp_path), dict[int, float]()
    monkeypatch.setenv("RAY_ADDRESS", simulated.address)
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
                simulated.add_node(num_cpus=1, object_store_memory=80 << 20)
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
