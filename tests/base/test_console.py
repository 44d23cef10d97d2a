"""What is printed goes into the log of the work it belongs to, and past it everywhere else."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from evalstudio.base.concurrency import DaemonPool
from evalstudio.base.console import PrintLog, routed_output


async def test_every_task_and_thread_writes_to_its_own_log(capsys: pytest.CaptureFixture[str]) -> None:
    pool = DaemonPool(most=4)

    async def work(number: int) -> str:
        log = PrintLog()
        with log.capturing():
            print("task", number)
            await asyncio.sleep(0.001)
            await pool.run(lambda: print("thread", number, file=sys.stderr))
        return log.text()

    with routed_output():
        print("outside")
        logs = await asyncio.gather(*(asyncio.create_task(work(number)) for number in range(50)))
    assert logs == [f"task {number}\nthread {number}\n" for number in range(50)]
    assert capsys.readouterr().out == "outside\n"


def test_bytes_and_lines_are_taken_too() -> None:
    log = PrintLog()
    with routed_output(), log.capturing():
        sys.stdout.buffer.write("Grüße\n".encode())
        sys.stdout.writelines(["a\n", "b\n"])
        sys.stdout.flush()
        assert sys.stdout.fileno() == 2
        assert isinstance(sys.stdout.isatty(), bool)
    assert log.text() == "Grüße\na\nb\n"


def test_a_log_keeps_its_beginning_and_says_what_is_missing() -> None:
    log = PrintLog(most=10)
    for _ in range(4):
        log.write("12345")
    assert log.text() == "1234512345\n[cut off here: 10 more characters were printed]\n"


def test_what_comes_after_the_end_is_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    go_on, log = threading.Event(), PrintLog()

    def late() -> None:
        go_on.wait(10)
        print("too late")

    from contextvars import copy_context

    with routed_output():
        with log.capturing():
            thread = threading.Thread(target=copy_context().run, args=(late,))
            thread.start()
        go_on.set()
        thread.join()
    assert log.text() == ""
    assert capsys.readouterr().out == ""


def test_the_streams_are_put_back(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    with routed_output(), routed_output():
        assert sys.stdout is not before[0]
    assert (sys.stdout, sys.stderr) == before
