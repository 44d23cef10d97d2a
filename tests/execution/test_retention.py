"""Servers and workers hold a project to its retention by themselves."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from tests.support.stored_runs import claimed, ending, queued

from evalstudio.execution import retention
from evalstudio.execution.workspace import Workspace, open_workspace
from evalstudio.server.policy import policy_for
from evalstudio.server.serving import open_studio
from evalstudio.storage import schema
from evalstudio.storage.errors import StorageError


def project(folder: Path, rules: dict[str, Any]) -> Path:
    path = folder / "evalstudio.config.json"
    path.write_text(json.dumps({"name": "kept", "retention": rules}))
    return path


async def finished_long_ago(workspace: Workspace) -> None:
    await queued(workspace.store, 1)
    (claim,) = await claimed(workspace.store)
    await workspace.store.finish(claim.lease, ending())
    old = update(schema.executions).values(completed=1)
    await workspace.store.database.write(lambda unit: unit.connection.execute(old) and None)


async def until_nothing_is_kept(workspace: Workspace) -> None:
    async with asyncio.timeout(30):
        while (await workspace.store.executions()).items:
            await asyncio.sleep(0.01)


async def test_a_server_deletes_what_is_not_kept(tmp_path: Path) -> None:
    config = project(tmp_path, {"maxAge": "90d"})
    async with open_workspace(config) as workspace:
        await finished_long_ago(workspace)
    async with open_studio(config, policy_for("127.0.0.1", None, [], []), processor=False) as studio:
        await until_nothing_is_kept(studio.workspace)


async def test_what_fails_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retention, "_EVERY_SECONDS", 0.01)
    deleting, failures = retention.retain, iter([StorageError("away"), ValueError("broken")])

    async def fails_twice(workspace: Workspace) -> Any:
        if (failure := next(failures, None)) is not None:
            raise failure
        return await deleting(workspace)

    monkeypatch.setattr(retention, "retain", fails_twice)
    async with open_workspace(project(tmp_path, {"maxAge": "90d"})) as workspace:
        await finished_long_ago(workspace)
        with caplog.at_level(logging.ERROR, "evalstudio"):
            async with retention.retaining(workspace):
                await until_nothing_is_kept(workspace)
    assert "Retention waits for the database: away" in caplog.text
    assert "Retention failed and will be tried again" in caplog.text


async def test_without_rules_nothing_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(_: Workspace) -> None:
        raise AssertionError

    monkeypatch.setattr(retention, "_work", never)
    async with open_workspace(project(tmp_path, {})) as workspace, retention.retaining(workspace):
        await asyncio.sleep(0)
