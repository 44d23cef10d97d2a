"""Definitions: one service that saves them, with the same rules behind the API, the commands and files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel
from pydantic.alias_generators import to_snake

from ..base.located import Located
from ..base.problems import InvalidInput, Problem, suggestion
from ..plugins import create_registry
from ..project.applied import remember
from ..project.changes import (
    DefinitionChange,
    DefinitionContext,
    ProjectState,
    RefusedDefinition,
    changes_for,
    entity_of,
    project_state_of,
    read_files,
    refused_definitions,
)
from ..project.documents import (
    KINDS,
    REFERENCES,
    STORED,
    AnyStored,
    DefinitionKind,
    Document,
    check_references,
    document_of,
    read_document,
    read_stored,
)
from ..project.entities import StoredConnector, StoredMonitor, StoredPersona, name_key
from ..project.secrets import SecretBox, addressee, masked
from ..storage.contract import DefinitionWrite, Filters, IdempotencyKey, Page, Records, every_item
from ..storage.errors import NotFound, VersionConflict
from .workspace import Workspace

_TRIES = 5


class DefinitionService:
    """The definitions of an open project. What is read from it has its secrets masked.

    Wherever a definition comes from, text that looks sealed is refused, masks are replaced by the secrets
    that are stored (and dropped if the address changes), what it refers to must be there, it must fit what is
    registered here, its secrets are sealed, and it replaces only the version that was read. What comes over
    the API or from another folder refers to allowed environment variables only. A model is needed to run a
    definition, not to save it.
    """

    def __init__(self, workspace: Workspace, *, from_api: bool = False) -> None:
        self._store = workspace.store
        self._workspace, self._from_api = workspace, from_api

    @cached_property
    def _context(self) -> DefinitionContext:
        # Made when something is saved: reading definitions needs no plugin.
        return replace(self._workspace.definition_context(), all_from_elsewhere=self._from_api)

    async def page(
        self, kind: DefinitionKind, filters: Filters, *, cursor: str | None, limit: int
    ) -> Page[AnyStored]:
        page = await self._store.list_of(kind, filters, cursor=cursor, limit=limit)
        return Page([masked_entity(entity) for entity in page.items], page.cursor)

    async def get(self, kind: DefinitionKind, definition_id: str) -> AnyStored:
        return masked_entity(await self._store.get(kind, definition_id))

    async def create(
        self,
        kind: DefinitionKind,
        definition: BaseModel,
        *,
        once: IdempotencyKey | None = None,
        located: Located | None = None,
    ) -> AnyStored:
        """Save a new definition, which refers to others by id."""
        document, state = await self._document(kind, definition, None, located)
        changes = await self._changes(state, [document])
        entity = writes_of(state, changes, self._context.box)[0].put
        assert entity is not None, "what is new is stored"
        return masked_entity(await self._store.create(entity, once=once))

    async def update(
        self,
        kind: DefinitionKind,
        definition_id: str,
        definition: BaseModel,
        *,
        expected: int | None = None,
        located: Located | None = None,
    ) -> AnyStored:
        """Replace a definition; with ``expected`` only if it is still of that version."""
        for tries_left in reversed(range(_TRIES)):
            known = await self._store.get(kind, definition_id)
            if expected not in (None, known.version):
                raise VersionConflict(kind, known.name, expected or 0, known.version)
            document, state = await self._document(kind, definition, known, located)
            changes = await self._changes(state, [document])
            writes = writes_of(state, changes, self._context.box)
            try:
                # Masks were restored from the version that was read: a newer one may hold other secrets.
                if writes[1:]:
                    await self._store.apply(writes)
                    return await self.get(kind, definition_id)
                entity = writes[0].put if writes else known
                assert entity is not None, "nothing is deleted here"
                return masked_entity(await self._store.update(entity, expected=known.version))
            except VersionConflict:
                if expected is not None or not tries_left:
                    raise
        raise AssertionError("the last try returns or raises")

    async def refused(self) -> list[RefusedDefinition]:
        """The definitions that cannot be run as they are, such as those an earlier version still took."""
        state = await load_project_state(self._store)
        return await asyncio.to_thread(refused_definitions, state, self._context)

    async def refused_without_plugins(self) -> list[RefusedDefinition]:
        """The same as far as it can be told without running the code of plugins."""
        state = await load_project_state(self._store)
        if not state.entities:
            return []
        context = DefinitionContext(create_registry(), self._workspace.folder)
        return await asyncio.to_thread(refused_definitions, state, context, known_types_only=True)

    async def delete(self, kind: DefinitionKind, definition_id: str, *, expected: int | None = None) -> None:
        await self._store.delete(kind, definition_id, expected=expected)

    async def apply(
        self,
        documents: Sequence[Document],
        *,
        prune: bool = False,
        dry_run: bool = False,
        review: Callable[[Sequence[DefinitionChange]], None] | None = None,
    ) -> list[DefinitionChange]:
        """Make the project match these documents, all of them or none; says what changed, or would.

        ``review`` sees the changes before any is made, and stops them by raising.
        """
        state = await load_project_state(self._store)
        changes = await self._changes(state, documents, prune=prune)
        if review is not None:
            review(changes)
        if changes and not dry_run:
            await self._store.apply(writes_of(state, changes, self._context.box))
        if not dry_run and not self._from_api:
            state = await load_project_state(self._store)
            await asyncio.to_thread(remember, self._workspace.folder, documents, state)
        return changes

    async def _changes(
        self, state: ProjectState, documents: Sequence[Document], *, prune: bool = False
    ) -> list[DefinitionChange]:
        # In a thread: a file of cases may be long, and a server has other requests to answer.
        return await asyncio.to_thread(changes_for, state, documents, self._context, prune=prune)

    async def _document(
        self, kind: DefinitionKind, definition: BaseModel, known: AnyStored | None, located: Located | None
    ) -> tuple[Document, ProjectState]:
        """A definition with names in place of ids, and the part of the project that it touches."""
        entities: dict[DefinitionKind, list[AnyStored]] = {one: [] for one in KINDS}
        for field, target in REFERENCES[kind].values():
            for one in getattr(definition, to_snake(field)):
                try:
                    entities[target].append(await self._store.get(target, one))
                except NotFound:
                    raise InvalidInput(Problem(f'there is no {target} "{one}"', (field,))) from None
        names = {entity.id: entity.name for referred in entities.values() for entity in referred}
        document = replace(document_of(kind, definition, names), located=located)
        if isinstance(known, StoredConnector) and _moves(document, known):
            # It loses the secrets of the personas that name it, under whichever name.
            entities = await _load_entities(self._store)
            renamed = known.model_copy(update={"name": document.name})
            others = [one for one in entities["connector"] if one.id != known.id]
            entities["connector"] = [*others, renamed]
        state = project_state_of(entities)
        if known is not None:
            # Under its new name, so that a rename is a change and not a second definition.
            state.documents[document.key] = document_of(kind, known, names)
            state.entities[document.key] = known
        return document, state


def masked_entity(entity: AnyStored) -> AnyStored:
    """A definition as it may be shown."""
    if not isinstance(entity, StoredPersona | StoredConnector | StoredMonitor):
        return entity
    kind: DefinitionKind = next(kind for kind in KINDS if isinstance(entity, STORED[kind]))
    return read_stored(kind, masked(entity.model_dump(by_alias=True, warnings=False)))


async def apply_files(workspace: Workspace, paths: Sequence[Path]) -> list[DefinitionChange]:
    """Make the project match its files; says what changed."""
    return await DefinitionService(workspace).apply(read_files(paths))


def writes_of(
    state: ProjectState, changes: Sequence[DefinitionChange], box: SecretBox | None = None
) -> list[DefinitionWrite]:
    """What storage has to do for the changes, in order, to the versions that were read; secrets sealed."""
    ids = _ids(state)
    writes: list[DefinitionWrite] = []
    for change in changes:
        known = state.entity((change.kind, name_key(change.name)))
        expected = known.version if known is not None else None
        if change.document is None:
            writes.append(DefinitionWrite(change.kind, delete=change.id, expected=expected))
            continue
        entity = entity_of(change.document, ids, known, box)
        ids[change.document.key] = entity.id
        writes.append(DefinitionWrite(change.kind, put=entity, expected=expected))
    return writes


def _moves(document: Document, known: StoredConnector) -> bool:
    """Whether a connector would talk to somebody else than before."""
    return addressee(document.body) != addressee(document_of("connector", known, {}).body)


async def load_project_state(records: Records) -> ProjectState:
    """Everything a project defines now."""
    return project_state_of(await _load_entities(records))


async def _load_entities(records: Records) -> dict[DefinitionKind, list[AnyStored]]:
    def every(kind: DefinitionKind) -> AsyncIterator[AnyStored]:
        return every_item(lambda cursor: records.list_of(kind, cursor=cursor, limit=500))

    return {kind: [entity async for entity in every(kind)] for kind in KINDS}


def find(state: ProjectState, kind: DefinitionKind, name: str) -> Document:
    """The definition of this name, or of this id."""
    match = state.documents.get((kind, name_key(name)))
    if match is not None:
        return match
    for key, entity in state.entities.items():
        if key[0] == kind and entity.id == name:
            return state.documents[key]
    names = [document.name for key, document in state.documents.items() if key[0] == kind]
    raise InvalidInput(Problem(f'there is no {kind} called "{name}"', hint=suggestion(name, names)))


def read_definition(state: ProjectState, kind: DefinitionKind, fields: Located) -> AnyStored:
    """A definition in the form files have, as an entity; what it refers to may be named or given by id."""
    names = {entity.id: entity.name for entity in state.entities.values()}
    body = dict(cast(dict[str, Any], fields.data))
    for field in REFERENCES[kind]:
        if isinstance(body.get(field), list):
            body[field] = [names.get(one, one) if isinstance(one, str) else one for one in body[field]]
    document = read_document(kind, replace(fields, data=body))
    check_references([document], {one: [e.name for e in state.of_kind(one)] for one in KINDS}).check()
    return entity_of(document, _ids(state))


def with_fields(known: Document, fields: Located) -> Located:
    """The fields of a definition with others put over them; null takes a field out."""
    body: dict[str, Any] = {**known.shown().body, **cast(Mapping[str, Any], fields.data)}
    return replace(fields, data={key: item for key, item in body.items() if item is not None})


def _ids(state: ProjectState) -> dict[tuple[DefinitionKind, str], str]:
    return {key: cast(str, entity.id) for key, entity in state.entities.items()}
