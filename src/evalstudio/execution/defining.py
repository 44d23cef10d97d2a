"""Making, changing and deleting single definitions by name, checked the same way as files are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from ..configs import closest
from ..files import ConfigError
from ..project.documents import (
    REFERENCES,
    Document,
    Kind,
    raise_problems,
    read_document,
)
from ..project.entities import name_key
from ..project.marked_files import Marked
from ..project.planning import Stock, plan_changes
from ..storage.errors import NameTaken
from .applying import carry_out, stock_of
from .workspace import Workspace


def find(stock: Stock, kind: Kind, wanted: str) -> Document:
    """The definition of this name, or of this id."""
    found = stock.documents.get((kind, name_key(wanted)))
    if found is not None:
        return found
    for key, entity in stock.entities.items():
        if key[0] == kind and entity.id == wanted:
            return stock.documents[key]
    names = [document.name for key, document in stock.documents.items() if key[0] == kind]
    raise ConfigError(f'there is no {kind} called "{wanted}"{closest(wanted, names)}')


async def create(workspace: Workspace, kind: Kind, given: Marked) -> Any:
    """Keep a new definition; answers it as it is kept."""
    stock = await stock_of(workspace.store)
    document = read_given(stock, kind, given)
    if document.key in stock.documents:
        raise NameTaken(kind, stock.documents[document.key].name)
    return await _keep(workspace, stock, document)


async def update(workspace: Workspace, kind: Kind, wanted: str, given: Marked) -> Any:
    """Change the given fields of a definition, and leave the others."""
    stock = await stock_of(workspace.store)
    known = find(stock, kind, wanted)
    document = changed(stock, known, given)
    if document.key != known.key:
        if document.key in stock.documents:
            raise NameTaken(kind, stock.documents[document.key].name)
        stock.documents[document.key] = stock.documents.pop(known.key)
        stock.entities[document.key] = stock.entities.pop(known.key)
    return await _keep(workspace, stock, document)


async def delete(workspace: Workspace, kind: Kind, wanted: str) -> str:
    """Delete a definition; answers its name."""
    stock = await stock_of(workspace.store)
    known = find(stock, kind, wanted)
    await workspace.store.delete(kind, stock.entity(known.key).id)
    return known.name


def changed(stock: Stock, known: Document, given: Marked) -> Document:
    """A definition with the given fields put over its own; null takes a field out."""
    fields = {**known.shown().body, **cast(dict[str, Any], given.data)}
    body = {key: item for key, item in fields.items() if item is not None}
    return read_given(stock, known.kind, replace(given, data=body))


def read_given(stock: Stock, kind: Kind, given: Marked) -> Document:
    """A definition in the form files have; what it refers to may also be given by id."""
    names = {entity.id: entity.name for entity in stock.entities.values()}
    body: Any = given.data
    if isinstance(body, dict):
        body = dict(cast(dict[str, Any], body))
        for field in REFERENCES[kind]:
            if isinstance(body.get(field), list):
                body[field] = [names.get(one, one) if isinstance(one, str) else one for one in body[field]]
    problems: list[str] = []
    document = read_document(kind, replace(given, data=body), problems)
    raise_problems(problems)
    assert document is not None, "a document is read or there are problems"
    return document


async def _keep(workspace: Workspace, stock: Stock, document: Document) -> Any:
    changes = plan_changes(stock, [document], workspace.surroundings())
    await carry_out(workspace, stock, changes)
    return await workspace.store.find(document.kind, document.name)
