"""Making a project match its files: what would change.

Everything is validated as a whole first; then it is written in the order in which things refer to each
other. What is exported and applied again changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from ..base.files import read_file
from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput, Problem, ProblemList
from ..base.times import now
from ..conversation.definitions import Persona, Scenario
from ..evaluators.results import SENT
from ..plugins import PluginRegistry
from .config import CONFIG_NAMES
from .documents import (
    KINDS,
    REFERENCES,
    STORED,
    WRITE_ORDER,
    AnyStored,
    DefinitionKind,
    Document,
    check_references,
    check_stored,
    document_of,
    read_documents,
    spelled_as_defined,
)
from .entities import Connector, name_key
from .monitors import Monitor
from .secrets import SecretBox, addressee, check_variables, refuse_sealed, restored
from .secrets import check_references as check_own_variables
from .validation import check_connector, check_monitor, check_scenario

Sign = Literal["+", "~", "-"]
DefinitionKey = tuple[DefinitionKind, str]
SUFFIXES = (".yaml", ".yml", ".json")


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
    variables: frozenset[str] = frozenset()
    """What definitions from elsewhere may refer to."""
    all_from_elsewhere: bool = False

    def is_from_elsewhere(self, document: Document) -> bool:
        """Whether it came over the API or from a file outside the project folder."""
        if self.all_from_elsewhere or document.located is None:
            return self.all_from_elsewhere
        path = Path(document.located.path)
        return path.is_file() and not path.resolve().is_relative_to(self.folder.resolve())


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
    names = {entity.id: entity.name for of_kind in entities.values() for entity in of_kind}
    for kind in KINDS:
        for entity in entities[kind]:
            document = document_of(kind, entity, names)
            project_state.documents[document.key] = document
            project_state.entities[document.key] = entity
    return project_state


def definition_files(path: Path) -> list[Path]:
    """The files a path stands for: itself, or everything of ours below a folder."""
    if path.is_dir():
        return sorted(_below(path))
    if not path.exists():
        raise InvalidInput.at(path, "no such file or folder")
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInput.at(path, f"definitions are read from {', '.join(SUFFIXES)} files")
    return [path]


def _below(folder: Path) -> Iterator[Path]:
    """Files of definitions; what is hidden, and the config file itself, is left out."""
    for place, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith((".", "__"))]
        for name in names:
            if name.lower().endswith(SUFFIXES) and not name.startswith(".") and name not in CONFIG_NAMES:
                yield Path(place, name)


def read_files(paths: Iterable[Path]) -> list[Document]:
    """Every definition in files and folders; all mistakes are reported at once."""
    problems = ProblemList()
    documents: list[Document] = []
    sources = list(paths)
    files = {file.resolve(): file for path in sources for file in definition_files(path)}
    for file in files.values():
        with problems.collect():
            for located in read_file(file):
                documents += read_documents(located, problems)
    problems += _doubles(documents)
    problems.check()
    if not documents:
        raise InvalidInput(f"there are no definitions in {', '.join(map(str, sources))}")
    return documents


def _doubles(documents: Iterable[Document]) -> Iterable[Problem]:
    seen: dict[tuple[DefinitionKind, str], Document] = {}
    for document in documents:
        first = seen.setdefault(document.key, document)
        if first is not document and first.located is not None:
            yield document.placed(Problem(f"is also defined at {first.located.at()}"))


def changes_for(
    project_state: ProjectState,
    requested: Sequence[Document],
    context: DefinitionContext,
    *,
    prune: bool = False,
) -> list[DefinitionChange]:
    """What applying the documents would change, all of it validated."""
    keys = {document.key for document in requested}
    others = [document for key, document in project_state.documents.items() if key not in keys]
    after = [*requested, *([] if prune else others)]
    known: dict[DefinitionKind, list[str]] = {
        kind: [d.name for d in after if d.kind == kind] for kind in KINDS
    }
    problems = check_references(requested, known)
    spelling = {document.key: document.name for document in after}
    moved = _moved_connectors(project_state, requested)
    settled = [_settled(project_state, spelled_as_defined(d, spelling), moved, problems) for d in requested]
    problems += _foreign_references(project_state, settled, context)
    settled += [] if prune else _without_connectors(others, moved)
    problems += _registration_problems(settled, after, context)
    problems.check()
    changes = [change for one in settled if (change := _change(project_state, one, context.box)) is not None]
    changes.sort(key=lambda change: WRITE_ORDER.index(change.kind))
    if prune:
        others.sort(key=lambda document: -WRITE_ORDER.index(document.kind))
        changes += [
            DefinitionChange("-", doc.kind, doc.name, id=project_state.entity(doc.key).id) for doc in others
        ]
    return changes


def _moved_connectors(project_state: ProjectState, requested: Sequence[Document]) -> set[str]:
    """Connectors that would talk to somebody else than before, by the key of their name."""
    connectors = [document for document in requested if document.kind == "connector"]
    known = {document.key[1]: project_state.documents.get(document.key) for document in connectors}
    return {
        name
        for document in connectors
        if (before := known[name := document.key[1]]) is not None
        and addressee(before.body) != addressee(document.body)
    }


def _without_connectors(documents: Iterable[Document], moved: set[str]) -> Iterator[Document]:
    """Personas whose secrets were given to a connector that now talks to somebody else."""
    for document in documents:
        names: list[str] = document.body.get("connectors", []) if document.kind == "persona" else []
        kept = [name for name in names if name_key(name) not in moved]
        if kept != names:
            yield replace(document, body={**document.body, "connectors": kept})


def _settled(
    project_state: ProjectState, document: Document, moved: set[str], problems: ProblemList
) -> Document:
    """A document with its masks replaced by the secrets that are kept, or dropped at another address."""
    known = project_state.documents.get(document.key)
    if known is not None and known.kind == "persona":
        known = next(_without_connectors([known], moved), known)
    wrong = ProblemList()
    with wrong.collect():
        refuse_sealed(document.body)
        document = replace(document, body=restored(document.body, known.body if known else None))
    problems += map(document.placed, wrong)
    return document


def change_of(
    project_state: ProjectState, document: Document, box: SecretBox | None
) -> DefinitionChange | None:
    """What applying one document would change, without a look at what is registered here."""
    spelling = {key: one.name for key, one in project_state.documents.items()}
    settled = _settled(
        project_state, spelled_as_defined(document, spelling), set(), problems := ProblemList()
    )
    problems.check()
    return _change(project_state, settled, box)


def _foreign_references(
    project_state: ProjectState, settled: Sequence[Document], context: DefinitionContext
) -> Iterator[Problem]:
    """References to the environment in definitions whose author does not own it."""
    for document in settled:
        if document.kind not in ("persona", "connector", "monitor") or not context.is_from_elsewhere(
            document
        ):
            continue
        known, problems = project_state.documents.get(document.key), ProblemList()
        with problems.collect():
            check_variables(document.body, known.body if known else None, context.variables)
        yield from map(document.placed, problems)


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
    settled: Sequence[Document], after: Sequence[Document], context: DefinitionContext
) -> Iterator[Problem]:
    """What validates on its own but not with what is registered here. Only running needs a model."""
    people = _people(after)
    for document in settled:
        yield from map(document.placed, _problems_here(document, people, context))


def _people(documents: Iterable[Document]) -> dict[str, Persona]:
    """The personas by name, without those that cannot be read."""
    people: dict[str, Persona] = {}
    for document in documents:
        if document.kind == "persona":
            with suppress(ValidationError):
                people[document.key[1]] = _persona_of(document)
    return people


def _problems_here(
    document: Document, people: Mapping[str, Persona], context: DefinitionContext
) -> ProblemList:
    problems = ProblemList()
    with problems.collect():
        if document.kind == "persona":
            check_own_variables(document.body)
        elif document.kind == "connector":
            check_connector(Connector.model_validate(document.body), context.registry)
        elif document.kind == "scenario":
            _check_scenario(document, people, context)
        elif document.kind == "monitor":
            check_own_variables(document.body)
            check_monitor(_monitor_of(document), context.registry)
    return problems


class RefusedDefinition(BaseModel):
    """A stored definition that cannot be run as it is."""

    model_config = SENT

    kind: DefinitionKind
    id: str
    name: str
    problems: list[str] = Field(description="What is wrong with it and what to change")


def refused_definitions(
    state: ProjectState, context: DefinitionContext, *, known_types_only: bool = False
) -> list[RefusedDefinition]:
    """Every stored definition that would be refused if it were defined now. Only running needs a model.

    With ``known_types_only`` nothing is said of what uses types of plugins that are not loaded.
    """
    people = _people(state.documents.values())
    refused: list[RefusedDefinition] = []
    for key, document in state.documents.items():
        entity, problems = state.entities[key], ProblemList()
        with problems.collect():
            check_stored(entity)
        if not problems and (not known_types_only or _types_are_known(document, context)):
            here = _problems_here(document, people, context)
            problems += [one.within(subject=f'{document.kind} "{document.name}"') for one in here]
        if problems:
            texts = [str(one) for one in problems]
            refused.append(
                RefusedDefinition(kind=document.kind, id=entity.id, name=document.name, problems=texts)
            )
    return refused


def _types_are_known(document: Document, context: DefinitionContext) -> bool:
    registry, body = context.registry, document.body
    if document.kind == "connector":
        return registry.get_connector(str(body.get("type"))) is not None
    entries: Sequence[Mapping[str, Any]] = body.get("evaluators") or ()
    return all(registry.get_evaluator(str(entry.get("type"))) is not None for entry in entries)


def _persona_of(document: Document) -> Persona:
    return Persona.model_validate({key: item for key, item in document.body.items() if key != "connectors"})


def _monitor_of(document: Document) -> Monitor:
    fields = {"scenarioIds" if key == "scenarios" else key: item for key, item in document.body.items()}
    return Monitor.model_validate(fields)


def _check_scenario(document: Document, people: Mapping[str, Persona], context: DefinitionContext) -> None:
    fields = {key: item for key, item in document.body.items() if key != "personas"}
    names = [name_key(name) for name in document.body.get("personas", [])]
    check_scenario(
        Scenario.model_validate(fields),
        context.registry,
        context.folder,
        personas=[people[name] for name in names if name in people],
        has_model=True,
    )


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
        fields |= {name: getattr(known, name) for name in ("id", "created_at", "version")}
        fields["updated_at"] = now()
    return STORED[document.kind].model_validate(fields)


def export_documents(project_state: ProjectState) -> list[Document]:
    """Everything a project defines, secrets masked, in the order in which things refer to each other."""
    ordered = sorted(project_state.documents.values(), key=lambda d: (KINDS.index(d.kind), d.key[1]))
    return [document.shown() for document in ordered]
