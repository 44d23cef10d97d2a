"""What can happen to a PostgreSQL server: it restarts, it is away, a connection dies at the commit."""

from __future__ import annotations

import asyncio
import re
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from tests.storage.conftest import on_postgres
from tests.support.cutting_proxy import CuttingProxy, cutting_proxy
from tests.support.postgres import PostgresServer, free_port
from tests.support.stored_runs import claimed, ending, new_run, queued, turn

from evalstudio.project.config import StorageSettings
from evalstudio.project.entities import Execution, StoredPersona
from evalstudio.storage import postgres as postgres_room
from evalstudio.storage.errors import LeaseLost, StorageError
from evalstudio.storage.opening import open_store, status
from evalstudio.storage.schema import metadata
from evalstudio.storage.store import SqlStore


@pytest.fixture
def dsn(postgres: PostgresServer, postgres_schema: str) -> str:
    postgres.clear(postgres_schema, [table.name for table in reversed(metadata.sorted_tables)])
    return postgres_schema


@pytest.fixture
async def cut(postgres: PostgresServer, dsn: str) -> AsyncIterator[tuple[CuttingProxy, SqlStore]]:
    async with cutting_proxy(postgres.port) as (proxy, port):
        through = dsn.replace(f":{postgres.port}/", f":{port}/") + "?sslmode=disable"
        async with await open_store(on_postgres(through), Path()) as store:
            yield proxy, store


async def test_work_goes_on_after_the_server_was_restarted(postgres: PostgresServer, dsn: str) -> None:
    async with await open_store(on_postgres(dsn), Path()) as store:
        execution = await queued(store, 40)
        await store.wait_for_work("w", 0.2)
        done: list[str] = []

        async def work() -> None:
            while claims := await store.claim("w", 4, 120):
                for claim in claims:
                    await store.append_turn(claim.lease, turn())
                    await store.finish(claim.lease, ending())
                    done.append(claim.lease.run_id)
                    await asyncio.sleep(0.02)

        working = asyncio.create_task(work())
        while len(done) < 8:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(postgres.restart)
        await asyncio.wait_for(working, 60)
        await store.abandon(["w"])
        await work()
        found = await store.execution(execution.id)
        assert (found.status, found.counts.passed) == ("completed", 40)
        assert len(done) == len(set(done)) == 40
        waiting = asyncio.create_task(store.wait_for_work("w", 20))
        await queued(store)
        assert await waiting


async def test_a_server_that_stays_away_is_named_after_a_while(
    postgres: PostgresServer, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_room, "PATIENCE_SECONDS", 0.5)
    async with await open_store(on_postgres(dsn), Path()) as store:
        await asyncio.to_thread(postgres.stop)
        try:
            with pytest.raises(StorageError, match="cannot be reached") as found:
                await store.create(StoredPersona(name="Ada"))
            assert postgres.password not in "".join(traceback.format_exception(found.value))
        finally:
            await asyncio.to_thread(postgres.start)
        monkeypatch.setattr(postgres_room, "PATIENCE_SECONDS", 60.0)
        await store.create(StoredPersona(name="Ada"))


async def test_a_turn_and_an_ending_are_written_once_though_the_commit_was_not_heard(
    cut: tuple[CuttingProxy, SqlStore],
) -> None:
    proxy, store = cut
    execution = await queued(store)
    (mine,) = await claimed(store)
    proxy.armed = b"COMMIT"
    await store.append_turn(mine.lease, turn())
    proxy.armed = b"COMMIT"
    await store.finish(mine.lease, ending())
    assert proxy.cuts == 2
    assert len((await store.run(mine.lease.run_id)).messages) == 2
    found = await store.execution(execution.id)
    assert (found.status, found.counts.passed, found.counts.running) == ("completed", 1, 0)
    told = [event.kind for event in await store.events()]
    assert (told.count("run.turn"), told.count("run.finished")) == (1, 1)
    with pytest.raises(LeaseLost):
        await store.finish(mine.lease, ending())


async def test_everything_else_is_done_once_too_though_the_commit_was_not_heard(
    cut: tuple[CuttingProxy, SqlStore],
) -> None:
    proxy, store = cut
    persona = StoredPersona(name="Ada")

    async def unheard(work: Awaitable[object]) -> None:
        proxy.armed = b"COMMIT"
        await work

    await unheard(store.create(persona))
    await unheard(store.update(persona.model_copy(update={"description": "x"}), expected=1))
    assert (await store.get("persona", persona.id)).version == 2
    await unheard(store.delete("persona", persona.id))
    execution = Execution()
    await unheard(store.enqueue(execution, [new_run(), new_run()]))
    assert (await store.execution(execution.id)).counts.total == 2
    await unheard(store.save_result({"n": 1}))
    assert len((await store.evaluations()).items) == 1
    run = (await store.runs()).items[0]
    await unheard(store.add_feedback({"score": 1}, run_id=run.id))
    assert len((await store.feedback(run_id=run.id)).items) == 1
    await unheard(store.cancel(execution_id=execution.id))
    assert (await store.execution(execution.id)).counts.cancelled == 2
    assert proxy.cuts == 7


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda dsn: dsn.replace("tests-know", "tests-forgot"), "password authentication failed"),
        (lambda dsn: dsn.rpartition("/")[0] + "/nowhere", "does not exist"),
        (lambda dsn: re.sub(r":\d+/", f":{free_port()}/", dsn), "cannot be reached"),
        (lambda dsn: dsn.replace("127.0.0.1", "127.0.0.1:not-a-port"), "refused"),
        (lambda dsn: dsn.replace("postgresql://", "mysql://"), "must look like"),
        (lambda dsn: dsn.replace("://", ":/"), "must look like"),
    ],
    ids=["wrong password", "no database", "no server", "bad port", "other scheme", "no scheme"],
)
async def test_what_is_wrong_with_a_connection_string_is_said_without_the_password(
    postgres: PostgresServer, dsn: str, change: Callable[[str], str], says: str
) -> None:
    settings = on_postgres(change(dsn))
    for call in (open_store, status):
        with pytest.raises(StorageError) as found:
            await call(settings, Path())
        shown = "".join(traceback.format_exception(found.value))
        assert says in str(found.value)
        assert "a-password-only" not in shown
    assert "a-password-only" not in repr(settings)


async def test_the_connection_string_comes_from_the_environment(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = StorageSettings(type="postgres", connection_string="${EVALSTUDIO_TEST_DSN}")
    monkeypatch.delenv("EVALSTUDIO_TEST_DSN", raising=False)
    with pytest.raises(StorageError, match="EVALSTUDIO_TEST_DSN, which is not set"):
        await open_store(settings, Path())
    monkeypatch.setenv("EVALSTUDIO_TEST_DSN", dsn.replace("postgresql://", "postgresql+asyncpg://"))
    async with await open_store(settings, Path()) as store:
        assert (await store.runs()).items == []
