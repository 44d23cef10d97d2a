"""Runs the real command, in a process of its own."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

COMMAND = str(Path(sys.executable).with_name("evalstudio"))
_SECONDS = 60.0
# The interpreter reads these when it starts, which a forked command does not do again.
_READ_AT_START = ("PYTHON", "LC_", "LANG", "COVERAGE", "TZ", "LD_")


def heed_ctrl_c() -> None:
    """For a new process: whoever runs the tests in the background lets theirs ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ignore_ctrl_c() -> None:
    """For a new process: as a shell starts its background jobs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def evalstudio(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR")}
    environment |= variables
    if not _may_fork(environment, variables):
        return _cold([COMMAND, *arguments], cwd, environment)
    return _forked([COMMAND, *arguments], cwd, environment)


def _may_fork(environment: Mapping[str, str], variables: Mapping[str, str]) -> bool:
    """Whether a command with these variables, on top of those of the tests, is the same when it is forked."""
    measured = any(key.startswith("COV") for key in environment)
    return not (measured or any(key.startswith(_READ_AT_START) for key in variables))


def _cold(arguments: list[str], cwd: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def run_pytest(
    *arguments: str, cwd: Path, environment: dict[str, str], cold: bool = False
) -> subprocess.CompletedProcess[str]:
    """A pytest session of its own; a ``cold`` one has imported nothing before."""
    command = str(Path(sys.executable).with_name("pytest"))
    if cold:
        return _cold([command, *arguments], cwd, environment)
    return _forked([command, *arguments], cwd, environment)


def _forked(arguments: list[str], cwd: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    with (
        open(os.devnull) as nothing,
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8") as err,
    ):
        streams = [nothing.fileno(), out.fileno(), err.fileno()]
        command = ForkedCommand(arguments, cwd, environment, streams)
        try:
            code = command.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            command.kill()
            raise
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), err.read())


def start_command(
    arguments: list[str],
    cwd: Path,
    variables: Mapping[str, str],
    *,
    out: BinaryIO | None = None,
    err: BinaryIO | None = None,
) -> subprocess.Popen[bytes] | ForkedCommand:
    """``evalstudio`` with these arguments, under way; what it says goes into files, or nowhere."""
    environment = {**os.environ, **variables}
    with open(os.devnull, "r+b") as nothing:
        if not _may_fork(environment, variables):
            return subprocess.Popen(
                [COMMAND, *arguments], cwd=cwd, env=environment, stdout=out or nothing, stderr=err or nothing
            )
        streams = [stream.fileno() for stream in (nothing, out or nothing, err or nothing)]
        return ForkedCommand([COMMAND, *arguments], cwd, environment, streams)


class ForkedCommand:
    """A command under way in a process of its own, with what is used of ``subprocess.Popen``."""

    def __init__(
        self, arguments: list[str], cwd: Path, environment: dict[str, str], streams: list[int]
    ) -> None:
        self._arguments = arguments
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(warm_socket())
        request = {"arguments": arguments, "folder": str(cwd), "environment": environment}
        body = json.dumps(request).encode() + b"\n"
        self._connection.sendall(body[socket.send_fds(self._connection, [body], streams) :])
        self.pid = self._number()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self._arguments, timeout or 0)
            self.returncode = self._number()
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _number(self) -> int:
        line = b""
        while not line.endswith(b"\n"):
            read = self._connection.recv(1)
            assert read, "the process that starts commands has ended"
            line += read
        return int(line)


@cache
def warm_socket() -> str:
    """Where commands are forked; started once per test process and ended with it."""
    folder = tempfile.TemporaryDirectory(prefix="commands-")
    path = f"{folder.name}/socket"
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm_commands", path],
        stdin=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )

    def end() -> None:
        assert server.stdin is not None
        server.stdin.close()
        server.wait()
        folder.cleanup()

    atexit.register(end)
    while not os.path.exists(path):
        assert server.poll() is None, "the process that starts commands has ended"
        time.sleep(0.01)
    return path


_SHIM = """#!{python} -SE
import json, os, socket, sys
# What is stopped by a signal has to be the process that gets it.
if {{"serve", "worker"}} & set(sys.argv) or any(name.startswith("COV") for name in os.environ):
    os.execv({command!r}, sys.argv)
connection = socket.socket(socket.AF_UNIX)
connection.connect({path!r})
request = dict(arguments=[{command!r}, *sys.argv[1:]], folder=os.getcwd(), environment=dict(os.environ))
body = json.dumps(request).encode() + b"\\n"
connection.sendall(body[socket.send_fds(connection, [body], [0, 1, 2]):])
answer = connection.makefile("r")
answer.readline()
sys.exit(int(answer.readline()))
"""


@cache
def warm_command_folder() -> str:
    """A folder for the PATH of a shell, in which ``evalstudio`` and ``pytest`` are forked as well."""
    path = warm_socket()
    folder = Path(path).with_name("bin")
    folder.mkdir()
    for name in ("evalstudio", "pytest"):
        command = str(Path(sys.executable).with_name(name))
        shim = folder / name
        shim.write_text(_SHIM.format(python=sys.executable, command=command, path=path))
        shim.chmod(0o755)
    return str(folder)
