"""Starts commands from a process that has everything imported, so that a test does not pay for imports.

Each command still is a process of its own: forked, with its own arguments, folder, environment and streams.
Run as a module with the path of a socket; it ends when its stdin does.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import random
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import entry_points
from typing import Any, NoReturn

MODULES = (
    "evalstudio.cli.app",
    "evalstudio.client.asynchronous",
    "evalstudio.client.synchronous",
    "evalstudio.evaluators.builtin",
    "evalstudio.execution.processor",
    "evalstudio.execution.request",
    "evalstudio.execution.workspace",
    "evalstudio.reporting.statistics",
    "evalstudio.scoring.runner",
    "evalstudio.storage.sqlite",
    "evalstudio.storage.store",
    "evalstudio.pytest_plugin",
    "_pytest.assertion.rewrite",
    "_pytest.junitxml",
    "pytest",
    "pytest_asyncio.plugin",
    "xdist.plugin",
    "aiohttp",
    "pydantic.deprecated.decorator",
    "rich.markdown",
    "rich.progress",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "typer._click.decorators",
    "uvloop",
)
PACKAGES = (
    *("cli", "connectors", "conversation", "evaluators.builtin", "execution", "llm", "project", "reporting"),
    *("reporting.reports", "scoring", "storage", "storage.migrations"),
)


def main(path: str) -> None:
    for name in [*MODULES, *_ours(), *(entry.module for entry in entry_points(group="pytest11"))]:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    # Nobody waits for the processes that wait for the commands.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        readable, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in readable:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _attend(connection)
            return
        connection.close()


def _ours() -> Iterator[str]:
    for package in PACKAGES:
        parent = importlib.import_module(f"evalstudio.{package}")
        yield from (module.name for module in pkgutil.iter_modules(parent.__path__, f"{parent.__name__}."))


def _attend(connection: socket.socket) -> None:
    """Fork the command, and tell its process id and, at the end, its status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not request.endswith(b"\n"):
        request += connection.recv(1 << 20)
    child = os.fork()
    if child == 0:
        connection.close()
        _become(json.loads(request), streams)
        _end_with(_program(sys.argv[0]))
    for stream in streams:
        os.close(stream)
    connection.sendall(f"{child}\n".encode())
    _, status = os.waitpid(child, 0)
    connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _program(path: str) -> Callable[[], object]:
    if os.path.basename(path) == "pytest":
        import pytest

        return lambda: sys.exit(pytest.main())
    from evalstudio.cli import main

    return main


def _end_with(program: Callable[[], object]) -> NoReturn:
    """Run it, and end as the interpreter does, but leave to the system what that would take apart piece by
    piece: all that is imported here, which takes longer than most commands."""
    try:
        program()
        sys.exit(0)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
        atexit._run_exitfuncs()
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code or 0)
        # What could not be written is told by the interpreter, and in its exit code.
        raise


def _become(request: dict[str, Any], streams: list[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = request["arguments"]
    sys.path[0] = os.path.dirname(request["arguments"][0])
    random.seed()


if __name__ == "__main__":
    main(sys.argv[1])
