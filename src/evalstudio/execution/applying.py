"""Applying files to a project: the plan of ``project`` carried out by ``storage``, whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..project.documents import KINDS, Document, Kind
from ..project.planning import Change, Stock, plan_changes, read_files, take_stock, writes_of
from ..storage import contract
from .workspace import Workspace


async def stock_of(records: contract.Records) -> Stock:
    """What the project holds now."""
    return take_stock({kind: await _all(records, kind) for kind in KINDS})


async def _all(records: contract.Records, kind: Kind) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = await records.list_of(kind, cursor=cursor, limit=500)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found


async def apply_files(
    workspace: Workspace, paths: Sequence[Path], *, prune: bool = False, dry_run: bool = False
) -> list[Change]:
    """Make the project match its files; says what changed, or would."""
    return await apply_documents(workspace, read_files(paths), prune=prune, dry_run=dry_run)


async def apply_documents(
    workspace: Workspace, documents: Sequence[Document], *, prune: bool = False, dry_run: bool = False
) -> list[Change]:
    """Make the project match these definitions; says what changed, or would."""
    stock = await stock_of(workspace.store)
    changes = plan_changes(stock, documents, workspace.surroundings(), prune=prune)
    if not dry_run:
        await carry_out(workspace, stock, changes)
    return changes


async def carry_out(workspace: Workspace, stock: Stock, changes: Sequence[Change]) -> None:
    """Make the changes of a plan, all of them or none."""
    writes = writes_of(stock, changes, workspace.surroundings().box)
    if writes:
        await workspace.store.apply([contract.Change(w.kind, w.put, w.delete) for w in writes])
