"""Whose work is taken over: that of processes which are gone for certain, and nobody else's."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalstudio.execution import workers
from evalstudio.execution.workers import has_died, new_worker_id

NOBODY = 999999999  # above every number that a process can have


@pytest.fixture
def place() -> str:
    """Machine, boot and namespace of this process."""
    return new_worker_id().partition(":")[0]


@pytest.fixture
def without_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A machine that tells nothing of its processes, as macOS does."""
    monkeypatch.setattr(workers, "_PROC", tmp_path)
    workers._place.cache_clear()
    yield
    workers._place.cache_clear()


def uptime_in_ticks() -> int:
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


class TestNames:
    def test_a_worker_is_named_by_its_machine_and_process(self) -> None:
        host, pid = re.escape(socket.gethostname()), os.getpid()
        assert re.fullmatch(
            f"{host}/[0-9a-f]{{8}}/[1-9][0-9]*:{pid}-[1-9][0-9]*:[0-9a-f]{{8}}", new_worker_id()
        )
        assert new_worker_id() != new_worker_id()

    @pytest.mark.usefixtures("without_proc")
    def test_what_the_machine_does_not_tell_is_zero(self) -> None:
        host, pid = re.escape(socket.gethostname()), os.getpid()
        assert re.fullmatch(f"{host}/0/0:{pid}-0:[0-9a-f]{{8}}", new_worker_id())


class TestOnThisMachine:
    def test_a_process_that_ended_is_dead(self, place: str) -> None:
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        for worker in (f"{place}:{ended.pid}-5:x", f"{place}:{ended.pid}-0:x", f"{place}:{ended.pid}"):
            assert has_died(worker) is True, worker

    def test_a_process_that_runs_is_alive(self, place: str) -> None:
        for worker in (new_worker_id(), f"{place}:{os.getpid()}-0:x", f"{place}:{os.getpid()}:x"):
            assert has_died(worker) is False, worker
            assert has_died(worker, one_machine=True) is False, worker

    def test_another_process_with_the_same_number_is_not_the_worker(self) -> None:
        place, own, _ = new_worker_id().split(":")
        pid, started = own.split("-")
        assert has_died(f"{place}:{pid}-{started}:x") is False
        for other in (1, int(started) - 1, int(started) + 1):
            assert has_died(f"{place}:{pid}-{other}:x") is True, other

    @pytest.mark.usefixtures("without_proc")
    def test_where_nobody_tells_when_a_process_began_its_number_alone_decides(self) -> None:
        worker = new_worker_id()
        assert has_died(worker) is False
        assert has_died(worker.replace(f":{os.getpid()}-", f":{NOBODY}-")) is True

    @pytest.mark.parametrize("name", [b"sleep", b") 1 (2) 3", b"\xff\xfe) "])
    def test_a_process_is_known_by_when_it_began_whatever_its_name(
        self, place: str, tmp_path: Path, name: bytes
    ) -> None:
        program = os.path.join(os.fsencode(tmp_path), name)
        shutil.copy(os.fsencode(shutil.which("sleep") or ""), program)
        earliest = uptime_in_ticks()
        with subprocess.Popen([program, b"600"]) as process:
            try:
                ticks = range(earliest - 1, uptime_in_ticks() + 2)
                alive = [tick for tick in ticks if not has_died(f"{place}:{process.pid}-{tick}:x")]
            finally:
                process.kill()
        assert len(alive) == 1

    def test_a_process_that_may_not_be_asked_is_alive(
        self, place: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(number: int, signal: int) -> None:
            assert (number, signal) == (77, 0)
            raise PermissionError

        monkeypatch.setattr(workers.os, "kill", refused)
        assert has_died(f"{place}:77-5:x") is False


class TestElsewhere:
    def test_nothing_is_certain_in_another_namespace(self, place: str) -> None:
        machine, boot, _ = place.split("/")
        worker = f"{machine}/{boot}/1:{NOBODY}-5:x"
        assert has_died(worker) is False
        assert has_died(worker, one_machine=True) is False

    def test_another_boot_is_another_machine_unless_there_is_one_only(self, place: str) -> None:
        machine, _, namespace = place.split("/")
        for number in (NOBODY, os.getpid()):
            worker = f"{machine}/00000000/{namespace}:{number}-5:x"
            assert has_died(worker) is False, "a machine of the same name"
            assert has_died(worker, one_machine=True) is True, "this machine before it was started anew"

    def test_nothing_is_certain_on_another_machine(self, place: str) -> None:
        _, boot, namespace = place.split("/")
        assert has_died(f"elsewhere/{boot}/{namespace}:{NOBODY}-5:x") is False


@pytest.mark.parametrize("one_machine", [False, True])
def test_of_a_name_that_cannot_be_read_nothing_is_certain(place: str, one_machine: bool) -> None:
    unreadable = ["", ":", "x", "x:", f"x:{NOBODY}:x", f"a/b:{NOBODY}:x", f"a/b/c/d:{NOBODY}:x", place]
    processes = ["", "x", "-5", f"-{NOBODY}", "5-x", "5-", "5-5-5", " 5", "1" * 40, "1" * 5000, "\u0665"]
    processes += [f"{os.getpid()}-{'1' * 5000}"]
    for worker in [*unreadable, *(f"{place}:{process}:x" for process in processes)]:
        assert has_died(worker, one_machine=one_machine) is False, worker
