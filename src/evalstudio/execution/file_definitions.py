"""Definitions used straight from files: laid over what a project has stored, and not stored themselves."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ..project.changes import DefinitionChange, ProjectState, changes_for, entity_of
from ..project.documents import AnyStored, DefinitionKind, Document
from ..project.entities import name_key
from ..project.secrets import SecretBox
from ..storage.contract import EVERYTHING, Filters, Page
from ..storage.errors import NotFound
from .definitions import load_project_state
from .workspace import Workspace

if TYPE_CHECKING:
    from ..storage.store import SqlStore

_ID_LENGTH = 21


class OverlaidStore:
    """A store whose definitions are those of a state; everything else is the store's own."""

    def __init__(self, store: SqlStore, state: ProjectState) -> None:
        self._store, self._state = store, state
        self._by_id = {(key[0], entity.id): entity for key, entity in state.entities.items()}

    async def get(self, kind: DefinitionKind, definition_id: str) -> AnyStored:
        try:
            return self._by_id[kind, definition_id]
        except KeyError:
            raise NotFound(kind, definition_id) from None

    async def find(self, kind: DefinitionKind, name: str) -> AnyStored | None:
        return self._state.entity((kind, name_key(name)))

    async def list_of(
        self,
        kind: DefinitionKind,
        filters: Filters = EVERYTHING,
        *,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[AnyStored]:
        """All of a kind in one page: they are in memory anyway."""
        assert filters == EVERYTHING, "nothing that runs definitions narrows them here"
        return Page(self._state.of_kind(kind))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def overlaid(
    workspace: Workspace, documents: Sequence[Document]
) -> tuple[Workspace, list[DefinitionChange]]:
    """The workspace as if the documents had been applied, and what applying them would change."""
    state = await load_project_state(workspace.store)
    context = workspace.definition_context()
    changes = await asyncio.to_thread(changes_for, state, documents, context)
    store = OverlaidStore(workspace.store, with_changes(state, changes, workspace.box))
    return replace(workspace, store=cast("SqlStore", store)), changes


def with_changes(
    state: ProjectState, changes: Sequence[DefinitionChange], box: SecretBox | None
) -> ProjectState:
    """What a project would hold after the changes, none of which deletes anything."""
    after = ProjectState(dict(state.entities), dict(state.documents))
    ids = {key: str(entity.id) for key, entity in state.entities.items()}
    for change in changes:
        document = change.document
        assert document is not None, "files delete nothing"
        known = state.entity(document.key)
        ids[document.key] = known.id if known else named_id(document.kind, document.name)
        entity = entity_of(document, ids, known, box)
        after.entities[document.key] = entity.model_copy(update={"id": ids[document.key]})
        after.documents[document.key] = document
    return after


def named_id(kind: DefinitionKind, name: str) -> str:
    """The id of a definition that is stored nowhere: the same in every execution, so that they compare."""
    digest = hashlib.sha256(f"{kind}\0{name_key(name)}".encode()).hexdigest()
    return f"file-{digest}"[:_ID_LENGTH]
