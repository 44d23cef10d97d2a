"""The API with 100,000 runs stored and 200 requests in flight, beside its most trivial endpoint."""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

from aiohttp import ClientSession, TCPConnector

from evalstudio.evaluators.results import Finding, Turn, Verdict
from evalstudio.messages import Message, TokensUsage
from evalstudio.project.config import StorageSettings
from evalstudio.project.entities import Execution
from evalstudio.storage.contract import NewRun, RunEnding, Snapshot
from evalstudio.storage.opening import open_store
from evalstudio.storage.store import SqlStore

from .measuring import BenchmarkLine

RUNS = 100_000
PER_EXECUTION = 1000
IN_FLIGHT = 200
REQUESTS = 6000
PER_SECOND = 1000
TRIVIAL = "/api/health"
_MAIN = "from evalstudio.cli import main; main()"


def measure() -> list[BenchmarkLine]:
    with tempfile.TemporaryDirectory(prefix="evalstudio-bench-") as folder:
        config = Path(folder) / "evalstudio.config.json"
        config.write_text(json.dumps({"name": "bench"}))
        run_ids = asyncio.run(_fill(Path(folder)))
        with _serving(config) as url:
            return asyncio.run(_load(url, run_ids))


async def _fill(folder: Path) -> list[str]:
    """Finished runs, each with a turn; some of their ids."""
    store = await open_store(StorageSettings(), folder)
    scenario = Snapshot.of({"name": "Booking", "script": ["Book"], "evaluators": [{"type": "latency"}]})
    connector = Snapshot.of({"name": "Agent", "type": "http", "baseUrl": "http://127.0.0.1:1"})
    try:
        for number in range(RUNS // PER_EXECUTION):
            runs = [
                NewRun(
                    scenario, connector, scenario_id=f"s{place % 20}", scenario_name=f"Booking {place % 20}"
                )
                for place in range(PER_EXECUTION)
            ]
            await store.enqueue(Execution(eval_id="e1", eval_name="Nightly", labels={"n": number}), runs)
            await _finish_all(store)
        page = await store.runs(limit=500)
        return [run.id for run in page.items]
    finally:
        await store.close()


async def _finish_all(store: SqlStore) -> None:
    said = [
        Message(role="user", content="Book a table"),
        Message(role="assistant", content="It is booked. " * 20),
    ]
    result = Finding("regex", "Regex", "regex", "assertion", "eventually", True, 1.0, "found")
    turn = Turn(
        number=1,
        user_message=said[0],
        messages=said[1:],
        results=[result],
        latency_ms=20.5,
        tokens_usage=TokensUsage(total_tokens=7),
    )
    while claimed := await store.claim("bench", 500, 600):
        endings = [
            RunEnding(
                Verdict(outcome="pass" if place % 10 else "fail", score=1.0),
                {"messageCount": 2, "evaluatorResults": [result.to_json()]},
                latency_ms=20.5,
                tokens_usage=TokensUsage(total_tokens=7),
                last_turn=turn,
            )
            for place in range(len(claimed))
        ]
        await asyncio.gather(
            *(store.finish(one.lease, ending) for one, ending in zip(claimed, endings, strict=True))
        )


@contextmanager
def _serving(config: Path) -> Generator[str]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    command = [sys.executable, "-c", _MAIN, "serve", "--no-processor", "--port", str(port), "-c", str(config)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


async def _load(url: str, run_ids: list[str]) -> list[BenchmarkLine]:
    async with ClientSession(url, connector=TCPConnector(limit=IN_FLIGHT)) as http:
        await _ready(http)
        ids = cycle(run_ids)
        paths: dict[str, Callable[[], str]] = {
            "list of runs": lambda: "/api/runs?limit=50",
            "one run": lambda: f"/api/runs/{next(ids)}",
            "failed runs of a scenario": lambda: "/api/runs?outcome=fail&scenarioId=s0&limit=20",
            "list of executions": lambda: "/api/executions?limit=20",
        }
        await _requests(http, paths, 300)
        times, wrong, per_second = await _requests(http, paths, REQUESTS)
        trivial, _, _ = await _requests(http, {"trivial": lambda: TRIVIAL}, REQUESTS // 4)
        return _lines(times | trivial, wrong, per_second)


async def _ready(http: ClientSession) -> None:
    for _ in range(300):
        try:
            async with http.get("/api/ready") as answer:
                if answer.status == 200:
                    return
        except OSError:
            await asyncio.sleep(0.1)
    raise RuntimeError("the server did not get ready")


async def _requests(
    http: ClientSession, paths: dict[str, Callable[[], str]], number: int
) -> tuple[dict[str, list[float]], int, float]:
    """Milliseconds by kind of request, how many went wrong, and how many were answered per second."""
    kinds = cycle(paths.items())
    work = iter([next(kinds) for _ in range(number)])
    times: dict[str, list[float]] = defaultdict(list)
    wrong = 0

    async def worker() -> None:
        nonlocal wrong
        for kind, path in work:
            start = time.perf_counter()
            async with http.get(path()) as answer:
                await answer.read()
                wrong += answer.status != 200
            times[kind].append((time.perf_counter() - start) * 1000)

    begin = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    return times, wrong, number / (time.perf_counter() - begin)


def _lines(times: dict[str, list[float]], wrong: int, per_second: float) -> list[BenchmarkLine]:
    """Per kind of request its p95; over all of them how many are answered in a second."""
    trivial = _p95(times.pop("trivial"))
    lines = [
        BenchmarkLine(
            f"API, {RUNS:,} runs, {IN_FLIGHT} in flight: {kind}",
            f"p95 {_p95(kind_times):.0f} ms",
            f"trivial endpoint p95 {trivial:.0f} ms",
            f"p95 ≤ 10 × trivial, no error ({wrong} errors)",
            _p95(kind_times) <= 10 * trivial and wrong == 0,
        )
        for kind, kind_times in times.items()
    ]
    return [
        *lines,
        BenchmarkLine(
            f"API, {RUNS:,} runs, {IN_FLIGHT} in flight: lists and single runs",
            f"{per_second:.0f} answers/s",
            f"trivial endpoint p95 {trivial:.0f} ms",
            f"≥ {PER_SECOND:,} a second",
            per_second >= PER_SECOND,
        ),
    ]


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]
