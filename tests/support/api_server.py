"""A real server on 127.0.0.1 for the tests, in this loop or in a process of its own."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar

from evalstudio.server.policy import ServerPolicy
from evalstudio.server.requests import Studio
from evalstudio.server.serving import ServerOptions, make_server, open_studio

from .command_line import start_command
from .postgres import free_port


@dataclass(slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def error(self) -> Any:
        return self.json["error"]


@dataclass(slots=True)
class Api:
    """A server and a client of it."""

    url: str
    studio: Studio
    http: ClientSession = field(repr=False)

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        raw: Any = None,
    ) -> Answer:
        more: dict[str, Any] = {}
        if body is not None:
            more["json"] = body
        if raw is not None:
            more["data"] = raw
        async with self.http.request(method, self.url + path, headers=headers, **more) as response:
            return Answer(response.status, response.headers, await response.text())

    async def made(self, path: str, body: Any) -> Any:
        answer = await self("POST", path, body)
        assert answer.status == 201, answer.text
        return answer.json

    async def found(self, path: str) -> Any:
        answer = await self("GET", path)
        assert answer.status == 200, answer.text
        return answer.json

    async def finished(self, execution_id: str, seconds: float = 20) -> Any:
        """The execution, once it is over."""
        async with asyncio.timeout(seconds):
            while True:
                found = await self.found(f"/api/executions/{execution_id}")
                if found["status"] in ("completed", "cancelled"):
                    return found
                await asyncio.sleep(0.05)


@asynccontextmanager
async def serving(
    config: Path | None,
    *,
    policy: ServerPolicy | None = None,
    processor: bool = False,
    web: bool = True,
    port: int | None = None,
) -> AsyncGenerator[Api]:
    """A server over a project; without a processor unless asked for."""
    async with open_studio(config, policy or ServerPolicy(), processor=processor) as studio:
        server = make_server(studio, ServerOptions(port=port or free_port(), web=web))
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
            if task.done():
                task.result()
        try:
            async with ClientSession(
                cookie_jar=DummyCookieJar(), timeout=ClientTimeout(total=30), auto_decompress=True
            ) as http:
                yield Api(f"http://127.0.0.1:{server.config.port}", studio, http)
        finally:
            server.should_exit = True
            await task


class ServerThread:
    """A server with a loop of its own in a thread: as real as a process, and there at once."""

    def __init__(self, config: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._config = config
        self._loop = asyncio.new_event_loop()
        self._ready, self._stop = threading.Event(), asyncio.Event()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            self._problem = error
        finally:
            self._ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        async with serving(self._config, processor=True, port=self.port):
            self._ready.set()
            await self._stop.wait()

    def wait_ready(self, seconds: float = 120) -> None:
        assert self._ready.wait(seconds), "the server did not get ready"
        assert self._problem is None, self._problem

    def stop(self, seconds: float = 30) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(seconds)
        assert self._problem is None, self._problem


class ServerProcess:
    """``evalstudio serve`` as a process that can be killed."""

    def __init__(
        self, config: Path, *options: str, port: int | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder = config.parent
        self._log = config.parent / "server.log"
        arguments = ["serve", "--port", str(self.port), "-c", str(config), *options]
        with self._log.open("ab") as log:
            self.process = start_command(arguments, Path.cwd(), env or {}, err=log)

    def wait_ready(self, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/api/ready", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                assert self.process.poll() is None, self.log
                time.sleep(0.1)
        raise AssertionError(f"the server did not get ready: {self.log}")

    @property
    def log(self) -> str:
        return self._log.read_text()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds: float = 30) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)
