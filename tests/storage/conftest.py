"""Every storage test runs on a real SQLite file and on a real PostgreSQL.

The schema is made once per session and copied or emptied: making it has tests of its own.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.support.postgres import PostgresServer

from evalstudio.project.config import StorageSettings
from evalstudio.storage.opening import DEFAULT_PATH, migrate, open_store
from evalstudio.storage.schema import metadata
from evalstudio.storage.store import SqlStore


def on_postgres(dsn: str) -> StorageSettings:
    return StorageSettings(type="postgres", connection_string=dsn)


@pytest.fixture(scope="session")
def postgres_schema(postgres: PostgresServer) -> str:
    dsn = postgres.new_database()
    asyncio.run(migrate(on_postgres(dsn), Path()))
    return dsn


@pytest.fixture(scope="session")
def sqlite_like(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sqlite")
    asyncio.run(migrate(StorageSettings(), folder))
    return folder / DEFAULT_PATH


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> StorageSettings:
    if request.param == "sqlite":
        (tmp_path / DEFAULT_PATH).parent.mkdir()
        shutil.copy(request.getfixturevalue("sqlite_like"), tmp_path / DEFAULT_PATH)
        return StorageSettings()
    server: PostgresServer = request.getfixturevalue("postgres")
    dsn: str = request.getfixturevalue("postgres_schema")
    server.clear(dsn, [table.name for table in reversed(metadata.sorted_tables)])
    return on_postgres(dsn)


Opener = Callable[[], Awaitable[SqlStore]]


@pytest.fixture
async def opener(settings: StorageSettings, tmp_path: Path) -> AsyncIterator[Opener]:
    """Opens the same database again, as another process would."""
    async with AsyncExitStack() as stack:

        async def opened() -> SqlStore:
            return await stack.enter_async_context(await open_store(settings, tmp_path))

        yield opened


@pytest.fixture
async def store(opener: Opener) -> SqlStore:
    return await opener()
