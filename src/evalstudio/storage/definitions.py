"""Personas, scenarios, connectors, evals and monitors: documents with a unique name and a version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from pydantic.alias_generators import to_snake
from pydantic_core import PydanticSerializationError
from sqlalchemy import Table, Text, delete, insert, select, type_coerce, update
from sqlalchemy.exc import IntegrityError

from ..base.json_text import json_text
from ..base.times import milliseconds_of, moment_of, now
from ..conversation.definitions import Persona, Scenario
from ..project.documents import REFERENCES, AnyStored, DefinitionKind, read_stored
from ..project.entities import Connector, Stored, StoredScenario, name_key
from ..project.monitors import Monitor
from . import schema
from .columns import short_key
from .contract import EVERYTHING, DefinitionWrite, Filters, IdempotencyKey, Page
from .errors import InUse, NameTaken, NotFound, StorageError, UnknownReference, VersionConflict
from .lists import contains, tagged
from .monitoring import forget_monitor
from .pages import paged
from .rows import AnyRow
from .schema import baselines
from .transaction import Transaction, known_target, remember

TABLES: dict[DefinitionKind, Table] = {
    "persona": schema.personas,
    "scenario": schema.scenarios,
    "connector": schema.connectors,
    "eval": schema.evals,
    "monitor": schema.monitors,
}
_OWN = set(Stored.model_fields)


def kind_of(entity: AnyStored) -> DefinitionKind:
    if isinstance(entity, Persona):
        return "persona"
    if isinstance(entity, Scenario):
        return "scenario"
    if isinstance(entity, Monitor):
        return "monitor"
    return "connector" if isinstance(entity, Connector) else "eval"


def create(unit: Transaction, entity: AnyStored, *, once: IdempotencyKey | None = None) -> AnyStored:
    kind = kind_of(entity)
    if (target := known_target(unit, once)) is not None:
        return get(unit, kind, target)
    if (row := _row(unit, kind, entity.id)) is not None:
        if unit.again:
            return _entity(kind, row)
        raise StorageError(f'There is already a {kind} with the id "{entity.id}".')
    _check_name(unit, kind, entity)
    _check_references(unit, entity)
    moment = now()
    stored = entity.model_copy(update={"created_at": moment, "updated_at": moment, "version": 1})
    row = _values(stored) | {"id": stored.id, "created": milliseconds_of(moment)}
    _guarded(unit, kind, stored, insert(TABLES[kind]).values(row))
    remember(unit, once, stored.id)
    return stored


def change(unit: Transaction, entity: AnyStored, *, expected: int | None = None) -> AnyStored:
    """Replace a definition; with ``expected`` only if nobody else has changed it since."""
    kind = kind_of(entity)
    table, row = TABLES[kind], _row(unit, kind, entity.id, lock=True)
    if row is None:
        raise NotFound(kind, entity.id)
    before = _entity(kind, row)
    same = _document(before) == _document(entity)
    if expected is not None and row.version != expected:
        if unit.again and same and row.version == expected + 1:
            return before
        raise VersionConflict(kind, before.name, expected, row.version)
    if same:
        return before
    moment = max(now(), before.updated_at)
    stored = entity.model_copy(
        update={"created_at": before.created_at, "updated_at": moment, "version": row.version + 1}
    )
    _check_name(unit, kind, stored)
    _check_references(unit, stored)
    _guarded(unit, kind, stored, update(table).where(table.c.id == stored.id).values(_values(stored)))
    return stored


def remove(
    unit: Transaction, kind: DefinitionKind, definition_id: str, *, expected: int | None = None
) -> None:
    row = _row(unit, kind, definition_id, lock=True)
    if row is None:
        if unit.again:
            return
        raise NotFound(kind, definition_id)
    if expected is not None and row.version != expected:
        raise VersionConflict(kind, row.name, expected, row.version)
    if users := _users(unit, kind, definition_id):
        names = ", ".join(f'"{name}"' for name in users)
        raise InUse(f'The {kind} "{row.name}" is used by {names}. Take it out there first.')
    if kind == "eval":
        unit.connection.execute(delete(baselines).where(baselines.c.eval_id == definition_id))
    if kind == "monitor":
        forget_monitor(unit, definition_id)
    unit.connection.execute(delete(TABLES[kind]).where(TABLES[kind].c.id == definition_id))


def apply(unit: Transaction, changes: Sequence[DefinitionWrite]) -> None:
    """Make a set of changes in the order given, all or none."""
    for step in changes:
        if step.delete is not None:
            remove(unit, step.kind, step.delete, expected=step.expected)
        elif step.put is not None and _row(unit, step.kind, step.put.id) is None:
            create(unit, step.put)
        elif step.put is not None:
            change(unit, step.put, expected=step.expected)


def get(unit: Transaction, kind: DefinitionKind, definition_id: str) -> AnyStored:
    row = _row(unit, kind, definition_id)
    if row is None:
        raise NotFound(kind, definition_id)
    return _entity(kind, row)


def find(unit: Transaction, kind: DefinitionKind, name: str) -> AnyStored | None:
    table = TABLES[kind]
    query = select(table).where(table.c.name_key == short_key(name_key(name)))
    row = unit.connection.execute(query).one_or_none()
    return None if row is None else _entity(kind, row)


def list_of(
    unit: Transaction,
    kind: DefinitionKind,
    filters: Filters = EVERYTHING,
    *,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[AnyStored]:
    table = TABLES[kind]
    query = select(table)
    if filters.since is not None:
        query = query.where(table.c.created >= milliseconds_of(filters.since))
    if filters.until is not None:
        query = query.where(table.c.created < milliseconds_of(filters.until))
    if filters.text:
        query = query.where(contains(table.c.name_key, filters.text))
    if filters.tags:
        query = query.where(*tagged(filters.tags)) if kind == "scenario" else query.where(table.c.id == "")
    return paged(unit, query, table.c.id, lambda row: _entity(kind, row), cursor, limit)


def _row(unit: Transaction, kind: DefinitionKind, definition_id: str, *, lock: bool = False) -> AnyRow | None:
    query = select(TABLES[kind]).where(TABLES[kind].c.id == definition_id)
    return unit.connection.execute(query.with_for_update() if lock else query).one_or_none()


def _entity(kind: DefinitionKind, row: AnyRow) -> AnyStored:
    own = {
        "id": row.id,
        "created_at": moment_of(row.created),
        "updated_at": moment_of(row.updated),
        "version": row.version,
    }
    return read_stored(kind, row.document | own)


def _document(entity: AnyStored) -> dict[str, Any]:
    try:
        # Through the text that is kept, so that what is compared is what would be read.
        return orjson.loads(
            json_text(entity.model_dump(mode="json", by_alias=True, exclude=_OWN, warnings=False))
        )
    except PydanticSerializationError:
        raise StorageError(
            f'The {kind_of(entity)} "{entity.name}" holds objects that only exist in code. '
            "List its evaluators by type and config to keep it."
        ) from None


def _values(entity: AnyStored) -> dict[str, Any]:
    values: dict[str, Any] = {
        "name": entity.name,
        "name_key": short_key(name_key(entity.name)),
        "version": entity.version,
        "updated": milliseconds_of(entity.updated_at),
        "document": _document(entity),
    }
    if isinstance(entity, StoredScenario):
        values["tags"] = json_text([name_key(tag) for tag in entity.tags])
    return values


def _check_name(unit: Transaction, kind: DefinitionKind, entity: AnyStored) -> None:
    table = TABLES[kind]
    taken = select(table.c.name).where(
        table.c.name_key == short_key(name_key(entity.name)), table.c.id != entity.id
    )
    if (row := unit.connection.execute(taken).first()) is not None:
        raise NameTaken(kind, row.name)


def _guarded(unit: Transaction, kind: DefinitionKind, entity: AnyStored, statement: Any) -> None:
    """Write; another process may have taken the name since it was checked."""
    try:
        unit.connection.execute(statement)
    except IntegrityError:
        raise NameTaken(kind, entity.name) from None


def _check_references(unit: Transaction, entity: AnyStored) -> None:
    for field, kind in REFERENCES[kind_of(entity)].values():
        table, ids = TABLES[kind], getattr(entity, to_snake(field))
        # Locked, so that none of them can be deleted before this is committed.
        query = select(table.c.id).where(table.c.id.in_(ids)).with_for_update(read=True)
        known = set(unit.connection.execute(query).scalars())
        if missing := [one for one in ids if one not in known]:
            raise UnknownReference(f'"{entity.name}" {field}: there is no {kind} "{missing[0]}".')


def _users(unit: Transaction, kind: DefinitionKind, definition_id: str) -> list[str]:
    """The names of what refers to a definition."""
    names: list[str] = []
    for owner, references in REFERENCES.items():
        for field, target in references.values():
            if target == kind:
                table = TABLES[owner]
                text = type_coerce(table.c.document, Text)
                near = select(table.c.name, table.c.document).where(
                    text.contains(definition_id, autoescape=True)
                )
                rows = unit.connection.execute(near)
                names += [row.name for row in rows if definition_id in row.document.get(field, ())]
    return names
