"""Definitions kept: files applied whole or not at all, single ones made, changed and deleted by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ..base.located import Located
from ..base.problems import InvalidInput, Problem, suggestion
from ..project.changes import (
    DefinitionChange,
    ProjectState,
    changes_for,
    project_state_of,
    read_files,
    writes_of,
)
from ..project.documents import KINDS, REFERENCES, DefinitionKind, Document, read_document
from ..project.entities import name_key
from ..storage import contract
from ..storage.errors import NameTaken
from .workspace import Workspace


async def load_project_state(records: contract.Records) -> ProjectState:
    """What the project holds now."""
    return project_state_of({kind: await _all(records, kind) for kind in KINDS})


async def _all(records: contract.Records, kind: DefinitionKind) -> list[Any]:
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
) -> list[DefinitionChange]:
    """Make the project match its files; says what changed, or would."""
    return await apply_documents(workspace, read_files(paths), prune=prune, dry_run=dry_run)


async def apply_documents(
    workspace: Workspace, documents: Sequence[Document], *, prune: bool = False, dry_run: bool = False
) -> list[DefinitionChange]:
    """Make the project match these definitions; says what changed, or would."""
    project_state = await load_project_state(workspace.store)
    changes = changes_for(project_state, documents, workspace.definition_context(), prune=prune)
    if not dry_run:
        await write_changes(workspace, project_state, changes)
    return changes


async def write_changes(
    workspace: Workspace, project_state: ProjectState, changes: Sequence[DefinitionChange]
) -> None:
    """Make the changes of a plan, all of them or none."""
    writes = writes_of(project_state, changes, workspace.definition_context().box)
    if writes:
        await workspace.store.apply([contract.DefinitionWrite(w.kind, w.put, w.delete) for w in writes])


def find(project_state: ProjectState, kind: DefinitionKind, wanted: str) -> Document:
    """The definition of this name, or of this id."""
    found = project_state.documents.get((kind, name_key(wanted)))
    if found is not None:
        return found
    for key, entity in project_state.entities.items():
        if key[0] == kind and entity.id == wanted:
            return project_state.documents[key]
    names = [document.name for key, document in project_state.documents.items() if key[0] == kind]
    raise InvalidInput(Problem(f'there is no {kind} called "{wanted}"', hint=suggestion(wanted, names)))


async def create(workspace: Workspace, kind: DefinitionKind, given: Located) -> Any:
    """Keep a new definition; answers it as it is kept."""
    project_state = await load_project_state(workspace.store)
    document = read_given(project_state, kind, given)
    if document.key in project_state.documents:
        raise NameTaken(kind, project_state.documents[document.key].name)
    return await _keep(workspace, project_state, document)


async def update(workspace: Workspace, kind: DefinitionKind, wanted: str, given: Located) -> Any:
    """Change the given fields of a definition, and leave the others."""
    project_state = await load_project_state(workspace.store)
    known = find(project_state, kind, wanted)
    document = changed(project_state, known, given)
    if document.key != known.key:
        if document.key in project_state.documents:
            raise NameTaken(kind, project_state.documents[document.key].name)
        project_state.documents[document.key] = project_state.documents.pop(known.key)
        project_state.entities[document.key] = project_state.entities.pop(known.key)
    return await _keep(workspace, project_state, document)


async def delete(workspace: Workspace, kind: DefinitionKind, wanted: str) -> str:
    """Delete a definition; answers its name."""
    project_state = await load_project_state(workspace.store)
    known = find(project_state, kind, wanted)
    await workspace.store.delete(kind, project_state.entity(known.key).id)
    return known.name


def changed(project_state: ProjectState, known: Document, given: Located) -> Document:
    """A definition with the given fields put over its own; null takes a field out."""
    fields = {**known.shown().body, **cast(dict[str, Any], given.data)}
    body = {key: item for key, item in fields.items() if item is not None}
    return read_given(project_state, known.kind, replace(given, data=body))


def read_given(project_state: ProjectState, kind: DefinitionKind, given: Located) -> Document:
    """A definition in the form files have; what it refers to may also be given by id."""
    names = {entity.id: entity.name for entity in project_state.entities.values()}
    body: Any = given.data
    if isinstance(body, dict):
        body = dict(cast(dict[str, Any], body))
        for field in REFERENCES[kind]:
            if isinstance(body.get(field), list):
                body[field] = [names.get(one, one) if isinstance(one, str) else one for one in body[field]]
    return read_document(kind, replace(given, data=body))


async def _keep(workspace: Workspace, project_state: ProjectState, document: Document) -> Any:
    changes = changes_for(project_state, [document], workspace.definition_context())
    await write_changes(workspace, project_state, changes)
    return await workspace.store.find(document.kind, document.name)
