"""The schema and its versions: made, upgraded after a backup, never downgraded, as the tables say."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert
from tests.storage.conftest import on_postgres
from tests.support.postgres import PostgresServer

from evalstudio.project.config import StorageSettings
from evalstudio.storage import schema
from evalstudio.storage.errors import SchemaMismatch
from evalstudio.storage.migrations import HEAD, create_sqlite, revisions, upgrade
from evalstudio.storage.opening import DEFAULT_PATH, migrate, open_store, status
from evalstudio.storage.postgres import PostgresDatabase
from evalstudio.storage.sqlite import connect
from evalstudio.storage.store import SqlStore
from evalstudio.storage.transaction import Transaction

SQLITE = StorageSettings()


def make_old(connection: Connection) -> None:
    """A database as the first version made it, with a persona in it."""
    upgrade(connection, "0001")
    row = {"id": "p1", "name": "Ada", "name_key": "ada", "version": 1, "created": 1, "updated": 1}
    connection.execute(insert(schema.personas), row | {"document": {"name": "Ada"}})


def old_sqlite(folder: Path) -> Path:
    path = folder / DEFAULT_PATH
    path.parent.mkdir(parents=True)
    engine = connect(path)
    with engine.begin() as connection:
        make_old(connection)
    engine.dispose()
    return path


async def on_server(dsn: str, work: object) -> None:
    database = PostgresDatabase(dsn)
    await database.first(work)  # pyright: ignore[reportArgumentType]
    await database.close()


async def test_the_migrations_make_exactly_the_tables_that_are_declared(store: SqlStore) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    def differences(unit: Transaction) -> list[object]:
        context = MigrationContext.configure(unit.connection, opts={"compare_type": False})
        return list(compare_metadata(context, schema.metadata))

    assert await store.database.read(differences) == []


def test_a_new_sqlite_file_is_what_all_the_migrations_make(tmp_path: Path) -> None:
    for name, make in (("migrated", upgrade), ("new", create_sqlite)):
        engine = connect(tmp_path / name)
        with engine.begin() as connection:
            make(connection)
        engine.dispose()
    assert shape_of(tmp_path / "new") == shape_of(tmp_path / "migrated")


def shape_of(path: Path) -> dict[str, object]:
    """Tables with columns, keys and references, and indexes with their conditions, however they were made."""
    with closing(sqlite3.connect(path)) as connection:
        named = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        version = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        kinds = connection.execute("SELECT name, wr, strict FROM pragma_table_list").fetchall()
        shape: dict[str, object] = {"version": version, "kinds of tables": sorted(kinds)}
        for kind, name, table, sql in named:
            if kind == "table":
                columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
                keys = connection.execute(f"PRAGMA foreign_key_list({name})").fetchall()
                # A column that a migration added stands last.
                shape[name] = (sorted(column[1:] for column in columns), sorted(key[2:] for key in keys))
            else:
                parts = connection.execute(f"PRAGMA index_xinfo({name})").fetchall()
                condition = " ".join((sql or "").partition(" WHERE ")[2].split())
                shape[f"{table}: {kind} {name}"] = ([part[2:] for part in parts], condition)
    return shape


def test_the_migrations_are_a_chain_whose_end_is_the_version_the_program_knows() -> None:
    before = None
    for revision, name in revisions().items():
        module = import_module(f"evalstudio.storage.migrations.versions.{name}")
        assert (module.revision, module.down_revision) == (revision, before)
        before = revision
    assert before == HEAD


def test_migrations_use_our_own_operations() -> None:
    folder = Path(schema.__file__).parent / "migrations"
    assert [str(file) for file in folder.rglob("*.py") if "import alembic" in file.read_text()] == []
    assert [str(file) for file in folder.rglob("*.py") if "from alembic" in file.read_text()] == []


async def test_a_database_is_made_when_there_is_none(tmp_path: Path) -> None:
    assert (await status(SQLITE, tmp_path)).state == "empty"
    async with await open_store(SQLITE, tmp_path) as store:
        assert (await store.list_of("persona")).items == []
    assert (await status(SQLITE, tmp_path)).state == "current"
    done = await migrate(SQLITE, tmp_path)
    assert (done.before.state, done.backup) == ("current", None)


async def test_an_older_sqlite_file_is_upgraded_after_a_backup(tmp_path: Path) -> None:
    path = old_sqlite(tmp_path)
    assert (await status(SQLITE, tmp_path)).state == "older"
    done = await migrate(SQLITE, tmp_path)
    assert done.before.found == "0001"
    assert done.backup is not None
    assert (await status(SQLITE, tmp_path)).state == "current"
    with closing(sqlite3.connect(done.backup)) as copy:
        assert copy.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)
        assert copy.execute("SELECT name FROM personas").fetchone() == ("Ada",)
    async with await open_store(SQLITE, tmp_path) as store:
        assert (await store.get("persona", "p1")).name == "Ada"
        await store.save_result({"outcome": "pass"})
    assert sorted(p.name for p in path.parent.glob("*.backup-*")) == [done.backup.name]


async def test_opening_upgrades_an_older_sqlite_file_by_itself(tmp_path: Path) -> None:
    path = old_sqlite(tmp_path)
    async with await open_store(SQLITE, tmp_path) as store:
        assert (await store.get("persona", "p1")).name == "Ada"
    assert len(list(path.parent.glob("*.backup-0001-*"))) == 1


async def test_an_older_server_is_left_to_those_who_look_after_it(postgres: PostgresServer) -> None:
    dsn = postgres.new_database()
    await on_server(dsn, make_old)
    settings = on_postgres(dsn)
    assert (await status(settings, Path())).state == "older"
    with pytest.raises(SchemaMismatch, match="evalstudio db migrate"):
        await open_store(settings, Path())
    assert (await migrate(settings, Path())).before.state == "older"
    async with await open_store(settings, Path()) as store:
        assert (await store.get("persona", "p1")).name == "Ada"


async def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path, postgres: PostgresServer) -> None:
    newer = "UPDATE alembic_version SET version_num = '9999'"
    await migrate(SQLITE, tmp_path)
    with closing(sqlite3.connect(tmp_path / DEFAULT_PATH)) as connection:
        connection.execute(newer)
        connection.commit()
    dsn = postgres.new_database()
    await migrate(on_postgres(dsn), Path())
    await on_server(dsn, lambda connection: connection.exec_driver_sql(newer) and None)
    for settings in (SQLITE, on_postgres(dsn)):
        assert (await status(settings, tmp_path)).state == "newer"
        for call in (open_store, migrate):
            with pytest.raises(SchemaMismatch, match=r"newer version of evalstudio.*9999.*Update evalstudio"):
                await call(settings, tmp_path)
    assert list((tmp_path / DEFAULT_PATH).parent.glob("*.backup-*")) == []


async def test_a_failed_upgrade_leaves_the_old_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_sqlite(tmp_path)

    def interrupted(connection: Connection) -> None:
        upgrade(connection)
        raise KeyboardInterrupt

    monkeypatch.setattr("evalstudio.storage.migrations.upgrade", interrupted)
    with pytest.raises(KeyboardInterrupt):
        await asyncio.to_thread(_migrate_now, tmp_path)
    monkeypatch.undo()
    assert (await status(SQLITE, tmp_path)).state == "older"
    async with await open_store(SQLITE, tmp_path) as store:
        assert (await store.get("persona", "p1")).name == "Ada"


def _migrate_now(folder: Path) -> None:
    from evalstudio.storage.opening import _migrate_sqlite  # pyright: ignore[reportPrivateUsage]

    _migrate_sqlite(folder / DEFAULT_PATH)


async def test_several_opening_a_new_project_at_once_make_it_once(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    for settings in (SQLITE, on_postgres(postgres.new_database())):
        stores = await asyncio.gather(*(open_store(settings, tmp_path) for _ in range(6)))
        await asyncio.gather(*(store.save_result({"n": 1}) for store in stores))
        assert len((await stores[0].evaluations()).items) == 6
        await asyncio.gather(*(store.close() for store in stores))


async def test_one_process_may_make_several_projects_at_once(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(6)]
    for folder in folders:
        folder.mkdir()
    for store in await asyncio.gather(*(open_store(SQLITE, folder) for folder in folders)):
        await store.close()
    for folder in folders:
        assert (await status(SQLITE, folder)).state == "current"


def test_no_database_library_is_imported_until_a_store_is_opened() -> None:
    code = (
        "import sys, evalstudio.storage.contract, evalstudio.storage.opening, evalstudio.project.entities;"
        "print([n for n in ('sqlalchemy', 'alembic', 'asyncpg', 'greenlet') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_ordinary_opening_imports_neither_the_migration_library_nor_the_other_database(
    tmp_path: Path,
) -> None:
    asyncio.run(migrate(SQLITE, tmp_path))
    code = (
        "import asyncio, sys; from pathlib import Path\n"
        "from evalstudio.project.config import StorageSettings\n"
        "from evalstudio.storage.opening import open_store\n"
        "async def main():\n"
        "    async with await open_store(StorageSettings(), Path(sys.argv[1])): pass\n"
        "asyncio.run(main()); "
        "print([n for n in ('alembic', 'asyncpg', 'sqlalchemy.dialects.postgresql') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
