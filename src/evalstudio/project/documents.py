"""Definitions as documents: what a file says of one entity, with references by name instead of id."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from pathlib import PurePosixPath
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_snake

from ..base.lazy_dataclass import dataclass
from ..base.located import Located
from ..base.problems import FieldPath, InvalidInput, Problem, ProblemList, problems_of, suggestion
from ..conversation.definitions import Persona, Scenario
from .entities import (
    Connector,
    Eval,
    Stored,
    StoredConnector,
    StoredEval,
    StoredMonitor,
    StoredPersona,
    StoredScenario,
    name_key,
)
from .monitors import Monitor
from .secrets import is_secret, masked

DefinitionKind = Literal["persona", "connector", "scenario", "eval", "monitor"]

KINDS: tuple[DefinitionKind, ...] = ("persona", "connector", "scenario", "eval", "monitor")
# What is referred to is written before what refers to it.
WRITE_ORDER: tuple[DefinitionKind, ...] = ("connector", "persona", "scenario", "eval", "monitor")
PLURALS: dict[str, DefinitionKind] = {f"{kind}s": kind for kind in KINDS}
MODELS: dict[DefinitionKind, type[BaseModel]] = {
    "persona": Persona,
    "connector": Connector,
    "scenario": Scenario,
    "eval": Eval,
    "monitor": Monitor,
}
AnyStored = StoredPersona | StoredScenario | StoredConnector | StoredEval | StoredMonitor
STORED: dict[DefinitionKind, type[AnyStored]] = {
    "persona": StoredPersona,
    "connector": StoredConnector,
    "scenario": StoredScenario,
    "eval": StoredEval,
    "monitor": StoredMonitor,
}
REFERENCES: dict[DefinitionKind, dict[str, tuple[str, DefinitionKind]]] = {
    "persona": {"connectors": ("connectorIds", "connector")},
    "connector": {},
    "scenario": {"personas": ("personaIds", "persona")},
    "eval": {"scenarios": ("scenarioIds", "scenario"), "connectors": ("connectorIds", "connector")},
    "monitor": {"scenarios": ("scenarioIds", "scenario")},
}
_STORED = set(Stored.model_fields)
_SCHEMA = "$schema"


def read_stored(kind: DefinitionKind, fields: Mapping[str, Any]) -> AnyStored:
    """A definition as it is kept. One that is refused today is read as it stands, to be shown and mended.

    Whoever uses it calls ``check_stored`` first.
    """
    model = STORED[kind]
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        refused = {part["loc"][0] for part in error.errors() if part["loc"]}
    values = dict(fields)
    for name, info in model.model_fields.items():
        key = info.alias or name
        if (spelling := key if key in values else name) in values:
            value, annotated = values.pop(spelling), cast(Any, info.annotation)
            values[name] = value if key in refused else TypeAdapter[Any](annotated).validate_python(value)
    return _keeping_all(model).model_construct(**values)


@cache
def _keeping_all(model: type[AnyStored]) -> type[AnyStored]:
    """The same kind of definition, with room for what it does not know."""
    subclass: Any = type(f"Refused{model.__name__}", (model,), {"model_config": ConfigDict(extra="allow")})
    return subclass


def check_stored(entity: AnyStored) -> None:
    """Refuse a stored definition that this version would not take."""
    kind: DefinitionKind = next(kind for kind in KINDS if isinstance(entity, STORED[kind]))
    fields = entity.model_dump(by_alias=True, exclude=_STORED, warnings=False)
    try:
        MODELS[kind].model_validate(fields)
    except ValidationError as error:
        problems = problems_of(error, fields, MODELS[kind], is_secret=is_secret)
        raise InvalidInput(*problems).within(subject=f'{kind} "{entity.name}"') from None


@dataclass(frozen=True, slots=True)
class Document:
    """One definition, in the form files have. ``located`` is where it was read, if it was."""

    kind: DefinitionKind
    name: str
    body: dict[str, Any] = field(repr=False)
    located: Located | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> tuple[DefinitionKind, str]:
        return self.kind, name_key(self.name)

    def placed(self, problem: Problem) -> Problem:
        """A problem with one part of it; of what was read from a file, with its name and the line."""
        if self.located is None:
            return problem
        return self.located.placed(
            problem.within(subject=f'{self.kind} "{self.name}"' if self.name else self.kind)
        )

    def shown(self) -> Document:
        """The same with its secrets masked."""
        return replace(self, body=masked(self.body))


def document_of(kind: DefinitionKind, entity: BaseModel, names: Mapping[str, str]) -> Document:
    """A definition as a document. ``names`` are those of everything that may be referred to, by id."""
    dumped = entity.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude=_STORED, warnings=False
    )
    fields = {ids: field_name for field_name, (ids, _) in REFERENCES[kind].items()}
    body: dict[str, Any] = {"name": dumped["name"]}
    for key, item in dumped.items():
        body[fields.get(key, key)] = [names.get(one, one) for one in item] if key in fields else item
    return Document(kind, dumped["name"], body)


def read_documents(located: Located, problems: ProblemList) -> list[Document]:
    """The definitions in one file; what is wrong is added to the problems, with its line."""
    documents: list[Document] = []
    for kind, part in _parts(located, problems):
        with problems.collect():
            documents.append(read_document(kind, part))
    return documents


def _parts(located: Located, problems: ProblemList) -> Iterable[tuple[DefinitionKind, Located]]:
    data = located.data
    if isinstance(data, list):
        for number in range(len(cast(list[Any], data))):
            yield from _parts(located.part((number,)), problems)
    elif not isinstance(data, dict):
        problems.append(located.placed(Problem(f"expected definitions, found {data!r:.40}")))
    else:
        fields = {key: item for key, item in cast(dict[str, Any], data).items() if key != _SCHEMA}
        inner = replace(located, data=fields)
        yield from _single(inner, problems) if "kind" in fields else _groups(inner, problems)


def _single(located: Located, problems: ProblemList) -> Iterable[tuple[DefinitionKind, Located]]:
    kind = located.data["kind"]
    if kind in KINDS:
        yield kind, replace(located, data={key: item for key, item in located.data.items() if key != "kind"})
    else:
        message = f'"{kind}" is not one of {", ".join(KINDS)}'
        problems.append(located.placed(Problem(message, ("kind",), suggestion(str(kind), KINDS))))


def _groups(located: Located, problems: ProblemList) -> Iterable[tuple[DefinitionKind, Located]]:
    """A file may hold many: ``scenarios: [...]``, ``personas: [...]`` and so on."""
    for key, items in located.data.items():
        if key not in PLURALS:
            hint = suggestion(key, PLURALS, "give a kind, or lists of")
            problems.append(located.placed(Problem("unknown key", (key,), hint)))
            if "name" in located.data:
                return
        elif not isinstance(items, list) and items is not None:
            problems.append(located.placed(Problem("expected a list", (key,))))
        else:
            for number in range(len(cast(list[Any], items or []))):
                yield PLURALS[key], located.part((key, number))


def read_document(kind: DefinitionKind, part: Located) -> Document:
    """One definition of a known kind."""
    if not isinstance(part.data, dict):
        message = f"expected named settings, found {part.data!r:.40}"
        raise InvalidInput(part.placed(Problem(message, subject=kind)))
    body = dict(cast(dict[str, Any], part.data))
    name: object = body.get("name")
    draft = Document(kind, name if isinstance(name, str) else "", body, part)
    problems = list(_misreferred(kind, body))
    for field_name, (ids, _) in REFERENCES[kind].items():
        if field_name in body:
            body[ids] = body.pop(field_name)
    try:
        entity = MODELS[kind].model_validate(body)
    except ValidationError as error:
        wrong = [_in_file(kind, one) for one in problems_of(error, body, MODELS[kind], is_secret=is_secret)]
        # What was referred to in a wrong way is not also unknown or missing.
        named = {*REFERENCES[kind], *(problem.path[0] for problem in problems)}
        problems += [one for one in wrong if not problems or not one.path or one.path[0] not in named]
    else:
        if not problems:
            return replace(document_of(kind, entity, {}), located=part)
    raise InvalidInput(*map(draft.placed, problems))


def _misreferred(kind: DefinitionKind, body: Mapping[str, Any]) -> Iterable[Problem]:
    """References in another form than files have: by id, or one name twice."""
    for field_name, (ids, target) in REFERENCES[kind].items():
        for other in (ids, to_snake(ids), ids.removesuffix("s"), to_snake(ids).removesuffix("s")):
            if other in body:
                hint = f"write {field_name}: [name of a {target}, …]"
                yield Problem("files refer by name", (other,), hint)
        seen: set[str] = set()
        names: object = body.get(field_name)
        for number, one in enumerate(cast(list[Any], names) if isinstance(names, list) else []):
            if isinstance(one, str) and name_key(one) in seen:
                yield Problem(f'"{one}" is named twice', (field_name, number))
            seen.add(name_key(one) if isinstance(one, str) else "")


def _in_file(kind: DefinitionKind, problem: Problem) -> Problem:
    """A problem with a model as one with the file: references have other names there."""
    names: dict[str | int, str] = {ids: field_name for field_name, (ids, _) in REFERENCES[kind].items()}
    path: FieldPath = tuple(names.get(part, part) for part in problem.path[:1])
    return replace(problem, path=path + problem.path[1:])


def check_references(
    documents: Iterable[Document], known: Mapping[DefinitionKind, Iterable[str]]
) -> ProblemList:
    """References to names that are not there."""
    names = {kind: list(of_kind) for kind, of_kind in known.items()}
    keys = {kind: {name_key(name) for name in of_kind} for kind, of_kind in names.items()}
    return ProblemList(
        document.placed(
            Problem(
                f'there is no {target} called "{name}"', (field_name, number), suggestion(name, names[target])
            )
        )
        for document in documents
        for field_name, (_, target) in REFERENCES[document.kind].items()
        for number, name in enumerate(document.body.get(field_name, []))
        if name_key(name) not in keys[target]
    )


def spelled_as_defined(document: Document, spelling: Mapping[tuple[DefinitionKind, str], str]) -> Document:
    """A document that spells the names it refers to as they are defined: case does not count."""
    body = dict(document.body)
    for field_name, (_, target) in REFERENCES[document.kind].items():
        if field_name in body:
            body[field_name] = [spelling.get((target, name_key(one)), one) for one in body[field_name]]
    return replace(document, body=body)


Format = Literal["yaml", "json"]
_LONGEST_NAME = 60
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)\Z")


def to_json(data: Any) -> str:
    import orjson

    return orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def to_text(data: Any, form: Format) -> str:
    if form == "json":
        return to_json(data)
    from .yaml_text import to_yaml

    return to_yaml(data)


def in_one(documents: Iterable[Document]) -> dict[str, Any]:
    """All definitions in one file, in lists by kind."""
    groups: dict[str, list[Any]] = {plural: [] for plural in PLURALS}
    for document in documents:
        groups[f"{document.kind}s"].append(document.body)
    return {plural: bodies for plural, bodies in groups.items() if bodies}


def in_files(documents: Sequence[Document], form: Format) -> Mapping[PurePosixPath, str]:
    """One file for each definition, in folders by kind, under names every file system takes."""
    files: dict[PurePosixPath, str] = {}
    for document in documents:
        path = _free_path(document.kind, document.name, form, files)
        files[path] = to_text({"kind": document.kind, **document.body}, form)
    return files


def _free_path(
    kind: DefinitionKind, name: str, form: Format, taken: Mapping[PurePosixPath, str]
) -> PurePosixPath:
    base, number = file_name(name), 1
    while (path := PurePosixPath(f"{kind}s", f"{base}{'' if number == 1 else f'-{number}'}.{form}")) in taken:
        number += 1
    return path


def file_name(name: str) -> str:
    """A name as part of a path: letters and digits of any script, lower case, not too long."""
    words = re.findall(r"\w+", unicodedata.normalize("NFC", name).lower().replace("_", " "))
    slug = "-".join(words)[:_LONGEST_NAME].strip("-")
    while len(slug.encode()) > 3 * _LONGEST_NAME:
        slug = slug[:-1]
    return f"{slug or 'unnamed'}-" if _RESERVED.match(slug) else slug or "unnamed"
