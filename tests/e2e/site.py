"""The server of a project as a process that can be killed and started again, with a small client of it."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.support.api_server import ServerProcess, ServerThread
from tests.support.projects import apply_project

from evalstudio.server.static import WEB

T = TypeVar("T")


def in_own_loop(work: Coroutine[Any, Any, T]) -> T:
    """The result of async work, in a thread of its own: the browser's loop runs in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def built_ui() -> None:
    assert (WEB / "index.html").exists(), "The web UI is not built; run: make web"


class Site:
    """A project and its server."""

    def __init__(self, config: Path) -> None:
        self.config = config
        self._server: ServerThread | ServerProcess | None = None

    @property
    def url(self) -> str:
        assert self._server is not None, "the server was not started"
        return self._server.url

    def apply(self) -> None:
        """Bring the project's definitions into its database."""
        apply_project(self.config)

    def start(self) -> None:
        """Serve from a thread of this process."""
        self._server = ServerThread(self.config)
        self._server.wait_ready()

    def start_process(self) -> None:
        """Serve from a process of its own, one that can be killed; again where it was."""
        self._server = ServerProcess(self.config, port=self._server.port if self._server else None)
        self._server.wait_ready()

    def kill(self) -> None:
        """End the server's process without a warning."""
        assert isinstance(self._server, ServerProcess)
        self._server.kill()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()

    def get(self, path: str) -> Any:
        return self._ask("GET", path)

    def post(self, path: str, body: Any = None) -> Any:
        return self._ask("POST", path, body)

    def put(self, path: str, body: Any) -> Any:
        return self._ask("PUT", path, body)

    def delete(self, path: str) -> None:
        self._ask("DELETE", path)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if data else {}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def named(self, noun: str, name: str) -> Any:
        """The definition of this name, for example of ``scenarios``."""
        return next(one for one in self.get(f"/api/{noun}")["items"] if one["name"] == name)

    def put_scenario(self, name: str, **changes: Any) -> None:
        """Change some fields of a scenario."""
        kept = self.named("scenarios", name)
        own = {key: kept[key] for key in kept.keys() - {"id", "version", "createdAt", "updatedAt"}}
        self.put(f"/api/scenarios/{kept['id']}", {**own, **changes})

    @contextmanager
    def changed(self, name: str, **changes: Any) -> Iterator[None]:
        """Some fields of a scenario changed for a while."""
        kept = self.named("scenarios", name)
        self.put_scenario(name, **changes)
        yield
        self.put_scenario(name, **{key: kept[key] for key in changes})

    def executed(self, name: str = "all", seconds: float = 30, **more: Any) -> Any:
        """An execution of an eval, once it is over."""
        started = self.post("/api/executions", {"evalId": self.named("evals", name)["id"], **more})
        return self.finished(started["id"], seconds)

    def finished(self, execution_id: str, seconds: float = 30) -> Any:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = self.get(f"/api/executions/{execution_id}")
            if found["status"] in ("completed", "cancelled"):
                return found
            time.sleep(0.1)
        raise AssertionError(f"the execution was not over after {seconds} seconds: {found}")

    def runs(self, execution_id: str) -> list[Any]:
        return self.get(f"/api/runs?executionId={execution_id}&limit=500")["items"]
