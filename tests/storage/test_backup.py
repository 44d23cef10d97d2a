"""A whole project is copied while it is in use, and moves from one database to the other."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.execution.test_executing import start
from tests.support.postgres import PostgresServer
from tests.support.projects import make_project, scripted

from evalstudio.execution.processor import work_off
from evalstudio.execution.workspace import open_workspace
from evalstudio.project.config import StorageSettings
from evalstudio.project.entities import StoredPersona
from evalstudio.storage.backup import back_up, restore
from evalstudio.storage.contract import Filters
from evalstudio.storage.errors import StorageError
from evalstudio.storage.opening import open_store

Storage = Callable[[], dict[str, Any]]


def settings_of(storage: dict[str, Any]) -> StorageSettings:
    return StorageSettings.model_validate(storage)


async def worked_off(folder: Path, storage: dict[str, Any]) -> str:
    """A project with one finished execution; its id."""
    config = make_project(folder, [scripted("s", "hello"), scripted("t", "x")], storage=storage)
    async with open_workspace(config) as workspace:
        execution = await start(workspace, folder)
        return (await work_off(workspace, execution, stop=asyncio.Event())).id


async def everything(storage: dict[str, Any], folder: Path, execution_id: str) -> Any:
    async with await open_store(settings_of(storage), folder) as store:
        runs = (await store.runs(Filters(execution_id=execution_id))).items
        return (
            (await store.execution(execution_id)).model_dump(),
            [(await store.run(run.id)).model_dump() for run in runs],
            [(event.id, event.kind, event.body) for event in await store.events()],
            [one.model_dump() for one in (await store.list_of("scenario")).items],
        )


@pytest.mark.parametrize("back", ["sqlite", "postgres"])
async def test_a_project_moves_with_its_results(
    tmp_path: Path, storage: Storage, back: str, postgres: PostgresServer
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    source = storage()
    execution_id = await worked_off(tmp_path / "one", source)
    copy = tmp_path / "copy.db"
    assert await back_up(settings_of(source), tmp_path / "one", copy) == copy.stat().st_size
    assert copy.stat().st_mode & 0o777 == 0o600
    target = {"type": back} | ({"connectionString": postgres.new_database()} if back == "postgres" else {})
    counts = await restore(settings_of(target), tmp_path / "two", copy)
    assert (counts["executions"], counts["runs"], counts["scenarios"]) == (1, 2, 2)
    assert await everything(target, tmp_path / "two", execution_id) == await everything(
        source, tmp_path / "one", execution_id
    )
    # The next event continues the numbers of those that were brought along.
    async with await open_store(settings_of(target), tmp_path / "two") as store:
        last = await store.last_event_id()
        await store.delete_execution(execution_id)
        assert await store.last_event_id() > last


async def test_a_copy_is_consistent_while_others_write(tmp_path: Path, storage: Storage) -> None:
    settings = settings_of(storage())
    async with await open_store(settings, tmp_path) as store:
        stop = asyncio.Event()

        async def write() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                await store.create(StoredPersona(name=f"p{number}"))

        writing = asyncio.create_task(write())
        while not (await store.list_of("persona")).items:
            await asyncio.sleep(0.01)
        copy = tmp_path / "copy.db"
        await back_up(settings, tmp_path, copy)
        stop.set()
        await writing
    with sqlite3.connect(copy) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        names = [name for (name,) in connection.execute("SELECT name FROM personas ORDER BY created, id")]
    assert sorted(names, key=lambda name: int(name[1:])) == [f"p{n}" for n in range(1, len(names) + 1)]
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


async def test_nothing_is_overwritten_and_nothing_strange_restored(tmp_path: Path) -> None:
    sqlite = settings_of({"type": "sqlite"})
    with pytest.raises(StorageError, match="nothing to copy"):
        await back_up(sqlite, tmp_path, tmp_path / "a.db")
    async with await open_store(sqlite, tmp_path) as store:
        await store.create(StoredPersona(name="Ada"))
    copy = tmp_path / "a.db"
    await back_up(sqlite, tmp_path, copy)
    with pytest.raises(StorageError, match="already; choose another"):
        await back_up(sqlite, tmp_path, copy)
    with pytest.raises(StorageError, match="holds personas already"):
        await restore(sqlite, tmp_path, copy)
    strange = tmp_path / "strange.db"
    strange.write_bytes(b"hello")
    other = tmp_path / "other"
    with pytest.raises(StorageError, match=r"strange\.db"):
        await restore(sqlite, other, strange)
    with pytest.raises(StorageError, match="no such file"):
        await restore(sqlite, other, tmp_path / "nowhere.db")
    half = tmp_path / "half.db"
    half.write_bytes(copy.read_bytes()[: copy.stat().st_size // 2])
    with pytest.raises(StorageError, match=r"half\.db"):
        await restore(sqlite, other, half)
