"""Queued runs and the worker processes that are to survive something."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.command_line import ForkedCommand, start_command
from tests.support.projects import make_project, scripted

from evalstudio.execution.definitions import apply_files
from evalstudio.execution.request import request_for, start_execution
from evalstudio.execution.workspace import open_workspace
from evalstudio.project.entities import RunSummary, StoredEval
from evalstudio.storage.contract import Filters, all_runs

COMMAND = [sys.executable, "-m", "evalstudio"]
WORKER = [*COMMAND, "worker", "--until-done", "--concurrency"]
_LONGEST_SECONDS = 240
Process = subprocess.Popen[bytes] | ForkedCommand


@dataclass
class Trial:
    """Runs in a queue, and the processes at work on them."""

    folder: Path
    config: Path
    runs: int
    workers: list[Process] = field(default_factory=list[Any])

    @property
    def log(self) -> str:
        path = self.folder / "worker.log"
        return path.read_text() if path.exists() else ""

    def worker(
        self, prefix: Sequence[str] = (), env: Mapping[str, str] | None = None, concurrency: int = 4
    ) -> Process:
        return self.start([*prefix, *WORKER, str(concurrency), "--config", str(self.config)], env)

    def start(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> Process:
        with open(self.folder / "worker.log", "ab") as log:
            if list(command[: len(COMMAND)]) == COMMAND:
                arguments = [*command[len(COMMAND) :]]
                process = start_command(arguments, self.folder, env or {}, out=log, err=log)
            else:
                process = subprocess.Popen(
                    command, stdout=log, stderr=log, cwd=self.folder, env={**os.environ, **(env or {})}
                )
        self.workers.append(process)
        return process

    def kill(self, worker: Process) -> None:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        self.workers.remove(worker)

    async def end(self, seconds: float = _LONGEST_SECONDS) -> list[int | None]:
        """Wait for the workers; their exit codes."""
        deadline = time.monotonic() + seconds
        while any(worker.poll() is None for worker in self.workers):
            assert time.monotonic() < deadline, self.log[-2000:]
            await asyncio.sleep(0.1)
        return [worker.returncode for worker in self.workers]

    async def look(self) -> list[RunSummary]:
        async with open_workspace(self.config) as workspace:
            return [run async for run in all_runs(workspace.store, Filters())]

    @contextmanager
    def cleaned_up(self) -> Iterator[None]:
        try:
            yield
        finally:
            for worker in self.workers:
                worker.kill()
                worker.wait()


async def begin(
    folder: Path,
    runs: int,
    seconds: float,
    storage: dict[str, Any],
    scenarios: list[dict[str, Any]] | None = None,
    **more: Any,
) -> Trial:
    """A project whose runs are queued: two turns of so many seconds each, unless scenarios are given."""
    usual = [scripted("s", f"wait={seconds} one", f"wait={seconds} two")]
    chosen = usual if scenarios is None else scenarios
    config = make_project(folder, chosen, repetitions=runs // len(chosen), storage=storage, **more)
    async with open_workspace(config) as workspace:
        await apply_files(workspace, [folder / "evals.json"])
        everything = await workspace.store.find("eval", "all")
        assert isinstance(everything, StoredEval)
        await start_execution(workspace, await request_for(workspace, everything))
    return Trial(folder, config, runs)
