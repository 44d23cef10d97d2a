"""Applying files to a project: the plan of ``project`` carried out by ``storage``, whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..project.documents import KINDS, Kind
from ..project.planning import Change, Stock, plan_changes, read_files, take_stock, writes_of
from ..storage import contract
from .workspace import Workspace


async def stock_of(workspace: Workspace) -> Stock:
    """What the project holds now."""
    return take_stock({kind: await _all(workspace, kind) for kind in KINDS})


async def _all(workspace: Workspace, kind: Kind) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = await workspace.store.list_of(kind, cursor=cursor, limit=500)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found


async def apply_files(
    workspace: Workspace, paths: Sequence[Path], *, prune: bool = False, dry_run: bool = False
) -> list[Change]:
    """Make the project match its files; says what changed, or would."""
    documents = read_files(paths)
    stock = await stock_of(workspace)
    changes = plan_changes(stock, documents, workspace.surroundings(), prune=prune)
    if changes and not dry_run:
        writes = writes_of(stock, changes)
        await workspace.store.apply([contract.Change(w.kind, w.put, w.delete) for w in writes])
    return changes
