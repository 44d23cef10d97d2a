"""A real LangGraph development server in a process of its own, with the small booking graph."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

APP = Path(__file__).parent / "langgraph_app"
_START_SECONDS = 90


@pytest.fixture(scope="session")
def langgraph_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one server for all tests that want one."""
    with langgraph_server(tmp_path_factory.mktemp("langgraph")) as url:
        yield url


@contextmanager
def langgraph_server(folder: Path) -> Iterator[str]:
    """Its address, once it answers. The app is copied: the server leaves files where it runs."""
    place = folder / "app"
    shutil.copytree(APP, place, ignore=shutil.ignore_patterns("__pycache__"))
    port = _free_port()
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"),
                *("--host", "127.0.0.1", "--port", str(port), "--config", "langgraph.json"),
                *("--n-jobs-per-worker", "20"),
            ],
            cwd=place,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(f"{url}/ok", process, log)
        yield url
    finally:
        _end(process)


def _environment(home: Path) -> dict[str, str]:
    """Nothing of ours but the path: no keys, no tracing, nothing reported anywhere."""
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}",
        "HOME": str(home),
        "LANGSMITH_TRACING": "false",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "NO_PROXY": "*",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with direct.open(url, timeout=2) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"the LangGraph server did not start:\n{log.read_text(errors='replace')[-4000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """The whole group, workers included."""
    for order in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, order)
            process.wait(5)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
