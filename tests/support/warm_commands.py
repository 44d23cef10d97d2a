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
    "evalstudio.server.serving",
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
    *("reporting.reports", "scoring", "server", "server.routes", "storage", "storage.migrations"),
)

# By a file that can be read once the command has ended: its process, and who asked for it.
Commands = dict[int, tuple[int, socket.socket]]


def main(path: str) -> None:
    for name in [*MODULES, *_ours(), *(entry.module for entry in entry_points(group="pytest11"))]:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    under_way: Commands = {}
    while True:
        readable, _, _ = select.select([listener, sys.stdin, *under_way], [], [])
        if sys.stdin in readable:
            return
        for ended in under_way.keys() & set(readable):
            _tell_status(ended, *under_way.pop(ended))
        if listener in readable:
            connection, _ = listener.accept()
            child = _start(connection, listener, under_way)
            under_way[os.pidfd_open(child)] = child, connection


def _ours() -> Iterator[str]:
    for package in PACKAGES:
        parent = importlib.import_module(f"evalstudio.{package}")
        yield from (module.name for module in pkgutil.iter_modules(parent.__path__, f"{parent.__name__}."))


def _start(connection: socket.socket, listener: socket.socket, under_way: Commands) -> int:
    """Fork the command that is asked for, and tell its process id."""
    request, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not request.endswith(b"\n"):
        request += connection.recv(1 << 20)
    child = os.fork()
    if child == 0:
        for ended in under_way:
            os.close(ended)
        for other in [connection, listener, *(asking for _, asking in under_way.values())]:
            other.close()
        _become(json.loads(request), streams)
        _end_with(_program(sys.argv[0]))
    for stream in streams:
        os.close(stream)
    connection.sendall(f"{child}\n".encode())
    return child


def _tell_status(ended: int, child: int, connection: socket.socket) -> None:
    os.close(ended)
    _, status = os.waitpid(child, 0)
    # Who asked may have given up, and be gone.
    with suppress(OSError):
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    connection.close()


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
