"""Making a project match its files: what would change, and changing it.

Everything is validated as a whole first; then it is written in the order in which things refer to each
other. What is exported and applied again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel

from ..conversation.definitions import Persona, Scenario
from ..plugins import PluginRegistry
from .documents import (
    KINDS,
    MASK,
    REFERENCES,
    Document,
    Kind,
    check_references,
    document_of,
    raise_problems,
    read_documents,
)
from .entities import (
    Connector,
    StoredConnector,
    StoredEval,
    StoredPersona,
    StoredScenario,
    name_key,
    now,
)
from .marked_files import definition_files, read_marked
from .validation import InvalidDefinition, check_connector, check_scenario

Sign = Literal["+", "~", "-"]
STORED: dict[Kind, type[BaseModel]] = {
    "persona": StoredPersona,
    "connector": StoredConnector,
    "scenario": StoredScenario,
    "eval": StoredEval,
}


@dataclass(frozen=True, slots=True)
class Change:
    """One line of a plan."""

    sign: Sign
    kind: Kind
    name: str
    fields: list[str] = field(default_factory=list[str])
    document: Document | None = None
    id: str | None = None

    def __str__(self) -> str:
        what = f" ({', '.join(self.fields)})" if self.fields else ""
        return f"{self.sign} {self.kind} {self.name}{what}"

    def to_json(self) -> dict[str, Any]:
        return {"change": self.sign, "kind": self.kind, "name": self.name, "fields": self.fields}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What definitions are validated against."""

    registry: PluginRegistry
    folder: Path
    has_model: bool


@dataclass(slots=True)
class Stock:
    """What a project holds now."""

    entities: dict[Kind, list[Any]]
    documents: dict[tuple[Kind, str], Document] = field(default_factory=dict[tuple[Kind, str], Document])

    def entity(self, key: tuple[Kind, str]) -> Any:
        return next((e for e in self.entities[key[0]] if name_key(e.name) == key[1]), None)


def take_stock(entities: Mapping[Kind, Sequence[Any]]) -> Stock:
    """What a project holds, as entities and as documents."""
    stock = Stock({kind: list(entities[kind]) for kind in KINDS})
    names = {entity.id: entity.name for found in stock.entities.values() for entity in found}
    for kind, found in stock.entities.items():
        for entity in found:
            document = document_of(kind, entity, names)
            stock.documents[document.key] = document
    return stock


def read_files(paths: Iterable[Path]) -> list[Document]:
    """Every definition in files and folders; all mistakes are reported at once."""
    problems: list[str] = []
    documents: list[Document] = []
    for path in paths:
        for file in definition_files(path):
            for marked in read_marked(file):
                documents += read_documents(marked, problems)
    seen: dict[tuple[Kind, str], Document] = {}
    for document in documents:
        if document.key in seen:
            first = seen[document.key].source
            problems.append(
                f'{document.source}: {document.kind} "{document.name}" is also defined at {first}'
            )
        seen[document.key] = document
    raise_problems(problems)
    return documents


def plan_changes(
    stock: Stock, wanted: Sequence[Document], around: Surroundings, *, prune: bool
) -> list[Change]:
    """What applying the documents would change, all of it validated."""
    keys = {document.key for document in wanted}
    kept = [] if prune else [doc for key, doc in stock.documents.items() if key not in keys]
    after = [*wanted, *kept]
    known: dict[Kind, list[str]] = {kind: [d.name for d in after if d.kind == kind] for kind in KINDS}
    raise_problems(check_references(after, known) or _misfits(wanted, after, around))
    changes = [change for document in wanted if (change := _change(stock, document)) is not None]
    changes.sort(key=lambda change: KINDS.index(change.kind))
    if prune:
        gone = [doc for key, doc in stock.documents.items() if key not in keys]
        gone.sort(key=lambda document: -KINDS.index(document.kind))
        changes += [Change("-", doc.kind, doc.name, id=stock.entity(doc.key).id) for doc in gone]
    return changes


def _change(stock: Stock, document: Document) -> Change | None:
    known = stock.documents.get(document.key)
    if known is None:
        return Change("+", document.kind, document.name, document=document)
    fields = sorted(
        name
        for name in known.body.keys() | document.body.keys()
        if known.body.get(name) != document.body.get(name)
    )
    if not fields:
        return None
    return Change("~", document.kind, document.name, fields, document, stock.entity(document.key).id)


def _misfits(wanted: Sequence[Document], after: Sequence[Document], around: Surroundings) -> list[str]:
    """What validates on its own but not with what is registered here."""
    people = {d.key[1]: Persona.model_validate(d.body) for d in after if d.kind == "persona"}
    problems: list[str] = []
    for document in wanted:
        try:
            if document.kind == "connector":
                check_connector(Connector.model_validate(document.body), around.registry)
            elif document.kind == "scenario":
                given = {key: item for key, item in document.body.items() if key != "personas"}
                cast_ = [people[name_key(name)] for name in document.body.get("personas", [])]
                check_scenario(
                    Scenario.model_validate(given),
                    around.registry,
                    around.folder,
                    personas=cast_,
                    has_model=around.has_model,
                )
        except (InvalidDefinition, ValueError) as error:
            problems.append(f'{document.source}: {document.kind} "{document.name}": {error}')
    return problems


@dataclass(frozen=True, slots=True)
class Write:
    """One thing to keep or to delete."""

    kind: Kind
    put: Any = None
    delete: str | None = None


def writes_of(stock: Stock, changes: Sequence[Change]) -> list[Write]:
    """A plan as what storage has to do, in order."""
    ids: dict[Kind, dict[str, str]] = {
        kind: {name_key(entity.name): entity.id for entity in found} for kind, found in stock.entities.items()
    }
    writes: list[Write] = []
    for change in changes:
        if change.sign == "-":
            writes.append(Write(change.kind, delete=change.id))
            continue
        fields = _definition(change, ids, stock)
        known = None if change.document is None else stock.entity(change.document.key)
        if known is not None:
            kept = {"id": known.id, "created_at": known.created_at, "version": known.version}
            fields |= kept | {"updated_at": now()}
        entity = STORED[change.kind].model_validate(fields)
        ids[change.kind][name_key(change.name)] = cast(Any, entity).id
        writes.append(Write(change.kind, put=entity))
    return writes


def _definition(change: Change, ids: Mapping[Kind, Mapping[str, str]], stock: Stock) -> dict[str, Any]:
    """The fields of a document: names back to ids, masked headers back to what is kept."""
    assert change.document is not None
    body = dict(change.document.body)
    for name, (field_name, target) in REFERENCES[change.kind].items():
        if name in body:
            body[field_name] = [ids[target][name_key(one)] for one in body.pop(name)]
    kept: dict[str, str] = getattr(stock.entity(change.document.key), "headers", {})
    headers: dict[str, str] = body.get("headers") or {}
    if MASK in headers.values():
        body["headers"] = {h: kept.get(h, "") if value == MASK else value for h, value in headers.items()}
    return body


def export_documents(stock: Stock) -> list[Document]:
    """Everything a project defines, in the order in which things refer to each other."""
    return sorted(stock.documents.values(), key=lambda d: (KINDS.index(d.kind), d.key[1]))
