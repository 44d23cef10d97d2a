"""Making a project match its files: what would change.

Everything is validated as a whole first; then it is written in the order in which things refer to each
other. What is exported and applied again changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ..base.files import ConfigError
from ..base.located import Place
from ..conversation.definitions import Persona, Scenario
from ..plugins import PluginRegistry
from .definition_files import definition_files, read_located
from .documents import (
    KINDS,
    REFERENCES,
    STORED,
    AnyStored,
    DefinitionKind,
    Document,
    check_references,
    document_of,
    raise_problems,
    read_documents,
    spelled_as_defined,
)
from .entities import Connector, name_key, now
from .secrets import SecretBox, SecretError, refuse_sealed, restored
from .secrets import check_references as check_own_variables
from .validation import check_connector, check_scenario

Sign = Literal["+", "~", "-"]
_MOST_PROBLEMS = 50
_PATH = re.compile(r"(?P<path>[A-Za-z]\w*(?:\[\d+\]|\.\w+)*): ")


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """One line of a plan."""

    sign: Sign
    kind: DefinitionKind
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
class DefinitionContext:
    """What definitions are validated against."""

    registry: PluginRegistry
    folder: Path
    box: SecretBox | None = None


@dataclass(slots=True)
class ProjectState:
    """What a project holds now, by kind and name."""

    entities: dict[tuple[DefinitionKind, str], Any] = field(
        default_factory=dict[tuple[DefinitionKind, str], Any]
    )
    documents: dict[tuple[DefinitionKind, str], Document] = field(
        default_factory=dict[tuple[DefinitionKind, str], Document]
    )

    def entity(self, key: tuple[DefinitionKind, str]) -> Any:
        return self.entities.get(key)

    def of_kind(self, kind: DefinitionKind) -> list[Any]:
        return [entity for (one, _), entity in self.entities.items() if one == kind]


def project_state_of(entities: Mapping[DefinitionKind, Sequence[Any]]) -> ProjectState:
    """What a project holds, as entities and as documents."""
    project_state = ProjectState()
    names = {entity.id: entity.name for found in entities.values() for entity in found}
    for kind in KINDS:
        for entity in entities[kind]:
            document = document_of(kind, entity, names)
            project_state.documents[document.key] = document
            project_state.entities[document.key] = entity
    return project_state


def read_files(paths: Iterable[Path]) -> list[Document]:
    """Every definition in files and folders; all mistakes are reported at once."""
    problems: list[str] = []
    documents: list[Document] = []
    given = list(paths)
    files = {file.resolve(): file for path in given for file in definition_files(path)}
    for file in files.values():
        try:
            for located in read_located(file):
                documents += read_documents(located, problems)
        except ConfigError as error:
            problems.append(str(error))
    problems += _doubles(documents)
    if len(problems) > _MOST_PROBLEMS:
        problems[_MOST_PROBLEMS:] = [f"and {len(problems) - _MOST_PROBLEMS:,} more"]
    raise_problems(problems)
    if not documents:
        raise ConfigError(f"there are no definitions in {', '.join(map(str, given))}")
    return documents


def _doubles(documents: Iterable[Document]) -> Iterable[str]:
    seen: dict[tuple[DefinitionKind, str], Document] = {}
    for document in documents:
        first = seen.setdefault(document.key, document)
        if first is not document and first.located is not None:
            yield document.problem((), f"is also defined at {first.located.at()}")


def changes_for(
    project_state: ProjectState,
    wanted: Sequence[Document],
    context: DefinitionContext,
    *,
    prune: bool = False,
) -> list[DefinitionChange]:
    """What applying the documents would change, all of it validated."""
    keys = {document.key for document in wanted}
    others = [document for key, document in project_state.documents.items() if key not in keys]
    after = [*wanted, *([] if prune else others)]
    known: dict[DefinitionKind, list[str]] = {
        kind: [d.name for d in after if d.kind == kind] for kind in KINDS
    }
    problems = check_references(wanted, known)
    spelling = {document.key: document.name for document in after}
    settled = [_settled(project_state, spelled_as_defined(d, spelling), problems) for d in wanted]
    raise_problems(problems or _registration_problems(settled, after, context))
    changes = [change for one in settled if (change := _change(project_state, one, context.box)) is not None]
    changes.sort(key=lambda change: KINDS.index(change.kind))
    if prune:
        others.sort(key=lambda document: -KINDS.index(document.kind))
        changes += [
            DefinitionChange("-", doc.kind, doc.name, id=project_state.entity(doc.key).id) for doc in others
        ]
    return changes


def _settled(project_state: ProjectState, document: Document, problems: list[str]) -> Document:
    """A document with its masks replaced by the secrets that are kept, or dropped at another address."""
    known = project_state.documents.get(document.key)
    try:
        refuse_sealed(document.body)
        return replace(document, body=restored(document.body, known.body if known else None))
    except SecretError as error:
        problems.append(_located_problem(document, str(error)))
        return document


def _change(
    project_state: ProjectState, document: Document, box: SecretBox | None
) -> DefinitionChange | None:
    known = project_state.documents.get(document.key)
    if known is None:
        return DefinitionChange("+", document.kind, document.name, document=document)
    if known.body == document.body:
        return None
    before, after = (box.open(one.body) if box else one.body for one in (known, document))
    fields = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if not fields:
        return None
    return DefinitionChange(
        "~", document.kind, document.name, fields, document, project_state.entity(document.key).id
    )


def _registration_problems(
    wanted: Sequence[Document], after: Sequence[Document], context: DefinitionContext
) -> list[str]:
    """What validates on its own but not with what is registered here. Only running needs a model."""
    people = {d.key[1]: Persona.model_validate(d.body) for d in after if d.kind == "persona"}
    problems: list[str] = []
    for document in wanted:
        try:
            if document.kind == "persona":
                check_own_variables(document.body)
            elif document.kind == "connector":
                check_connector(Connector.model_validate(document.body), context.registry)
            elif document.kind == "scenario":
                _check_scenario(document, people, context)
        except ValueError as error:
            problems.append(_located_problem(document, str(error)))
    return problems


def _check_scenario(document: Document, people: Mapping[str, Persona], context: DefinitionContext) -> None:
    given = {key: item for key, item in document.body.items() if key != "personas"}
    voices = [people[name_key(name)] for name in document.body.get("personas", [])]
    check_scenario(
        Scenario.model_validate(given),
        context.registry,
        context.folder,
        personas=voices,
        has_model=True,
    )


def _located_problem(document: Document, message: str) -> str:
    """A complaint that begins with a path belongs on the line of that path."""
    found = _PATH.match(message)
    if found is None:
        return document.problem((), message)
    steps = re.findall(r"\w+", found["path"])
    place: Place = tuple(int(step) if step.isdigit() else step for step in steps)
    return document.problem(place, message[found.end() :])


def entity_of(
    document: Document,
    ids: Mapping[tuple[DefinitionKind, str], str],
    known: Any = None,
    box: SecretBox | None = None,
) -> AnyStored:
    """What is kept of a document: names back to ids, and the identity of what it replaces."""
    fields = box.seal(document.body) if box else dict(document.body)
    for name, (field_name, target) in REFERENCES[document.kind].items():
        if name in fields:
            fields[field_name] = [ids[target, name_key(one)] for one in fields.pop(name)]
    if known is not None:
        kept = {"id": known.id, "created_at": known.created_at, "version": known.version}
        fields |= kept | {"updated_at": now()}
    return STORED[document.kind].model_validate(fields)


def export_documents(project_state: ProjectState) -> list[Document]:
    """Everything a project defines, secrets masked, in the order in which things refer to each other."""
    found = sorted(project_state.documents.values(), key=lambda d: (KINDS.index(d.kind), d.key[1]))
    return [document.shown() for document in found]
