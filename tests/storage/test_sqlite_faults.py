"""What can happen to a SQLite file: a full disk, no permission, a lock that stays, rubbish."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text
from tests.support.stored_runs import claimed, ending, queued, turn

from evalstudio.evaluators.results import Turn
from evalstudio.messages import Message
from evalstudio.project.config import StorageSettings
from evalstudio.project.entities import StoredPersona
from evalstudio.storage import sqlite
from evalstudio.storage.errors import NotFound, StorageError
from evalstudio.storage.opening import DEFAULT_PATH, migrate, open_store, sqlite_path, status
from evalstudio.storage.sqlite import SqliteDatabase
from evalstudio.storage.transaction import Transaction

SETTINGS = StorageSettings()


def intact(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with room for the schema and a little more."""
    whole = sqlite.connect

    def limited(path: Path, *, reading: bool = False, full_sync: bool = False) -> object:
        engine = whole(path, reading=reading, full_sync=full_sync)

        @event.listens_for(engine, "connect")
        def _limit(connection: sqlite3.Connection, _: object) -> None:
            connection.execute("PRAGMA max_page_count=120")

        return engine

    monkeypatch.setattr(sqlite, "connect", limited)


@pytest.mark.usefixtures("small_disk")
async def test_a_full_disk_is_said_plainly_and_damages_nothing(tmp_path: Path) -> None:
    async with await open_store(SETTINGS, tmp_path) as store:
        execution = await queued(store, 2)
        one, two = [claim.lease for claim in await claimed(store, limit=2)]
        await store.append_turn(one, turn())
        big = Turn(number=2, messages=[Message(role="assistant", content="x" * 2_000_000)])
        full, fine = await asyncio.gather(
            store.append_turn(one, big), store.append_turn(two, turn()), return_exceptions=True
        )
        assert isinstance(full, StorageError)
        assert "disk is full" in str(full).lower()
        assert "free some space" in str(full)
        assert fine is None
        await store.finish(one, ending())
        await store.finish(two, ending())
        assert (await store.execution(execution.id)).counts.passed == 2
        assert len((await store.run(one.run_id)).messages) == 2
    assert intact(tmp_path / DEFAULT_PATH)


async def test_a_locked_database_is_waited_for_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.1)
    monkeypatch.setattr(sqlite, "PATIENCE_SECONDS", 0.4)
    async with await open_store(SETTINGS, tmp_path) as store:
        with closing(sqlite3.connect(tmp_path / DEFAULT_PATH, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StorageError, match="Another program has held the database"):
                await store.create(StoredPersona(name="Ada"))
            writing = asyncio.create_task(store.create(StoredPersona(name="Bob")))
            await asyncio.sleep(0.2)
            assert (await store.list_of("persona")).items == []
            other.execute("COMMIT")
        await writing
        assert await store.find("persona", "bob") is not None


@pytest.mark.parametrize(
    "content", [b"this is not a database" * 100, b"SQLite format 3\x00" + b"\xff" * 4096]
)
async def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.db"
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"odd\.db"):
        await open_store(StorageSettings(path="odd.db"), tmp_path)
    assert path.read_bytes() == content


async def test_a_folder_in_the_place_of_the_file_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / DEFAULT_PATH).mkdir(parents=True)
    with pytest.raises(StorageError, match="cannot be opened"):
        await open_store(SETTINGS, tmp_path)


_IN_A_READ_ONLY_FOLDER = """
import asyncio, os, sys, tempfile
from pathlib import Path
from evalstudio.project.config import StorageSettings
from evalstudio.project.entities import StoredPersona
from evalstudio.storage.errors import StorageError
from evalstudio.storage.opening import open_store

async def main():
    with tempfile.TemporaryDirectory() as elsewhere:
        async with await open_store(StorageSettings(), Path(elsewhere)):
            pass
    if os.getuid() == 0:
        # Root may write anywhere, so somebody else has to try, once everything is imported.
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try:
        async with await open_store(StorageSettings(path="evalstudio.db"), Path(sys.argv[1])) as store:
            await store.create(StoredPersona(name="Ada"))
    except StorageError as error:
        print(error)

asyncio.run(main())
"""


@pytest.mark.parametrize("exists", [True, False], ids=["with a database", "empty"])
async def test_a_read_only_folder_is_said_plainly(exists: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="evalstudio-readonly-") as name:
        folder = Path(name)
        if exists:
            async with await open_store(StorageSettings(path="evalstudio.db"), folder):
                pass
            (folder / "evalstudio.db").chmod(0o444)
        folder.chmod(0o555)
        command = [sys.executable, "-c", _IN_A_READ_ONLY_FOLDER, name]
        done = subprocess.run(command, capture_output=True, text=True)
        folder.chmod(0o755)
        assert "Check the permissions of" in done.stdout, done.stderr
        if exists:
            assert intact(folder / "evalstudio.db")


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = await open_store(SETTINGS, tmp_path)
    await store.close()
    await store.close()
    for call in (store.list_of("persona"), store.create(StoredPersona(name="x"))):
        with pytest.raises(StorageError, match="closed"):
            await call


async def test_closing_waits_for_what_is_being_written(tmp_path: Path) -> None:
    store = await open_store(SETTINGS, tmp_path)
    writing = [asyncio.create_task(store.create(StoredPersona(name=f"p{n}"))) for n in range(50)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*writing)
    async with await open_store(SETTINGS, tmp_path) as again:
        assert len((await again.list_of("persona", limit=100)).items) == 50


async def test_many_operations_share_few_commits(tmp_path: Path) -> None:
    async with await open_store(SETTINGS, tmp_path) as store:
        await asyncio.gather(*(store.save_result({"n": n}) for n in range(500)))
        size = (tmp_path / f"{DEFAULT_PATH}-wal").stat().st_size
        assert size < 500 * 4096
        assert len((await store.evaluations(limit=1000)).items) == 500


async def test_an_operation_that_fails_inside_leaves_its_neighbours_alone(tmp_path: Path) -> None:
    async with await open_store(SETTINGS, tmp_path) as store:

        def broken(_: object) -> None:
            raise ZeroDivisionError("inside")

        results = await asyncio.gather(
            store.create(StoredPersona(name="a")),
            store.database.write(broken),
            store.delete("persona", "nope"),
            store.create(StoredPersona(name="b")),
            return_exceptions=True,
        )
        assert isinstance(results[1], ZeroDivisionError)
        assert isinstance(results[2], NotFound)
        assert {one.name for one in (await store.list_of("persona")).items} == {"a", "b"}


async def test_the_file_is_where_the_config_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sqlite_path(SETTINGS, tmp_path) == tmp_path / "data" / "evalstudio.db"
    monkeypatch.setenv("WHERE", "elsewhere")
    assert sqlite_path(StorageSettings(path="${WHERE}/x.db"), tmp_path) == tmp_path / "elsewhere" / "x.db"
    with pytest.raises(StorageError, match="NOT_SET"):
        sqlite_path(StorageSettings(path="${NOT_SET}"), tmp_path)
    assert (await status(SETTINGS, tmp_path)).state == "empty"
    assert list(tmp_path.iterdir()) == []


async def test_odd_names_of_folders_are_no_trouble(tmp_path: Path) -> None:
    folder = tmp_path / "a b?c#d%20é;x=1"
    async with await open_store(SETTINGS, folder) as store:
        await store.create(StoredPersona(name="Ada"))
    assert (folder / DEFAULT_PATH).exists()


@pytest.mark.parametrize(("synchronous", "level"), [("normal", 1), ("full", 2)])
async def test_commits_wait_for_the_disk_where_asked(tmp_path: Path, synchronous: Any, level: int) -> None:
    settings = StorageSettings(synchronous=synchronous)
    await migrate(settings, tmp_path)
    async with await open_store(settings, tmp_path) as store:
        query = text("PRAGMA synchronous")
        assert await store.database.write(lambda unit: unit.connection.execute(query).scalar()) == level


async def test_a_statement_that_a_failed_write_still_holds_does_not_keep_the_database_locked(
    tmp_path: Path,
) -> None:
    database = SqliteDatabase(tmp_path / "held.db")

    def add(number: int) -> Callable[[Transaction], None]:
        return lambda unit: unit.driver.execute("insert into t values (?)", [number]) and None

    def fail(unit: Transaction) -> None:
        # What it has begun to read stays with the error, until that is gone.
        held.append(unit.connection.execute(text("select a from t")))
        unit.driver.execute("insert into t values (3)")
        unit.driver.execute("insert into nowhere values (1)")

    held: list[object] = []
    await database.write(lambda unit: unit.driver.execute("create table t (a integer)") and None)
    await asyncio.gather(*(database.write(add(number)) for number in (1, 2)))
    with pytest.raises(StorageError):
        await database.write(fail)
    await database.write(add(4))
    numbers = await database.read(lambda unit: unit.driver.execute("select a from t").fetchall())
    assert sorted(number for (number,) in numbers) == [1, 2, 4]
    await database.close()
