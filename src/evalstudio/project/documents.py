"""Definitions as documents: what a file says of one entity, with references by name instead of id."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Literal, cast

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_snake

from ..base.files import ConfigError
from ..base.located import PLAIN, Located, Place
from ..base.schemas import path_text
from ..configs import closest
from ..conversation.definitions import Persona, Scenario
from .entities import (
    Connector,
    Eval,
    Stored,
    StoredConnector,
    StoredEval,
    StoredPersona,
    StoredScenario,
    name_key,
)
from .problems import mistakes
from .secrets import masked

DefinitionKind = Literal["persona", "connector", "scenario", "eval"]

# In the order in which they refer to each other.
KINDS: tuple[DefinitionKind, ...] = ("persona", "connector", "scenario", "eval")
PLURALS: dict[str, DefinitionKind] = {f"{kind}s": kind for kind in KINDS}
MODELS: dict[DefinitionKind, type[BaseModel]] = {
    "persona": Persona,
    "connector": Connector,
    "scenario": Scenario,
    "eval": Eval,
}
AnyStored = StoredPersona | StoredScenario | StoredConnector | StoredEval
STORED: dict[DefinitionKind, type[AnyStored]] = {
    "persona": StoredPersona,
    "connector": StoredConnector,
    "scenario": StoredScenario,
    "eval": StoredEval,
}
REFERENCES: dict[DefinitionKind, dict[str, tuple[str, DefinitionKind]]] = {
    "persona": {},
    "connector": {},
    "scenario": {"personas": ("personaIds", "persona")},
    "eval": {"scenarios": ("scenarioIds", "scenario"), "connectors": ("connectorIds", "connector")},
}
_STORED = set(Stored.model_fields)
_SCHEMA = "$schema"


@dataclass(frozen=True, slots=True)
class Document:
    """One definition, in the form files have. ``marked`` is where it was read, if it was."""

    kind: DefinitionKind
    name: str
    body: dict[str, Any] = field(repr=False)
    located: Located | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> tuple[DefinitionKind, str]:
        return self.kind, name_key(self.name)

    def problem(self, place: Place, message: str) -> str:
        """A complaint about one part of it; of what was read from a file, with its name and the line."""
        path = path_text(place)
        problem = f"{path}{': ' if path else ''}{message}"
        if self.located is None:
            return problem
        at = self.located.at(place)
        where = f"{at}: " if at else ""
        name = f' "{self.name}"' if self.name else ""
        return f"{where}{self.kind}{name}: {problem}"

    def shown(self) -> Document:
        """The same with its secrets masked."""
        return replace(self, body=masked(self.body))


def document_of(kind: DefinitionKind, entity: BaseModel, names: Mapping[str, str]) -> Document:
    """A definition as a document. ``names`` are those of everything that may be referred to, by id."""
    dumped = entity.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=_STORED)
    fields = {ids: field_name for field_name, (ids, _) in REFERENCES[kind].items()}
    body: dict[str, Any] = {"name": dumped["name"]}
    for key, item in dumped.items():
        body[fields.get(key, key)] = [names.get(one, one) for one in item] if key in fields else item
    return Document(kind, dumped["name"], body)


def read_documents(located: Located, problems: list[str]) -> list[Document]:
    """The definitions in one file; what is wrong is added to the problems, with its line."""
    read = [read_document(kind, part, problems) for kind, part in _parts(located, problems)]
    return [document for document in read if document is not None]


def _parts(located: Located, problems: list[str]) -> Iterable[tuple[DefinitionKind, Located]]:
    data = located.data
    if isinstance(data, list):
        for place in range(len(cast(list[Any], data))):
            yield from _parts(located.part((place,)), problems)
    elif not isinstance(data, dict):
        problems.append(f"{located.at()}: expected definitions, found {data!r:.40}")
    else:
        fields = {key: item for key, item in cast(dict[str, Any], data).items() if key != _SCHEMA}
        inner = replace(located, data=fields)
        yield from _single(inner, problems) if "kind" in fields else _groups(inner, problems)


def _single(located: Located, problems: list[str]) -> Iterable[tuple[DefinitionKind, Located]]:
    given = located.data["kind"]
    if given in KINDS:
        yield given, replace(located, data={key: item for key, item in located.data.items() if key != "kind"})
    else:
        hint = closest(str(given), KINDS)
        problems.append(f'{located.at(("kind",))}: kind: "{given}" is not one of {", ".join(KINDS)}{hint}')


def _groups(located: Located, problems: list[str]) -> Iterable[tuple[DefinitionKind, Located]]:
    """A file may hold many: ``scenarios: [...]``, ``personas: [...]`` and so on."""
    for key, items in located.data.items():
        if key not in PLURALS:
            hint = closest(key, PLURALS) or f"; give a kind, or lists of {', '.join(PLURALS)}"
            problems.append(f'{located.at((key,))}: unknown key "{key}"{hint}')
            if "name" in located.data:
                return
        elif not isinstance(items, list) and items is not None:
            problems.append(f"{located.at((key,))}: {key}: expected a list")
        else:
            for place in range(len(cast(list[Any], items or []))):
                yield PLURALS[key], located.part((key, place))


def read_document(kind: DefinitionKind, part: Located, problems: list[str]) -> Document | None:
    """One definition of a known kind, or nothing and what is wrong with it."""
    if not isinstance(part.data, dict):
        problems.append(f"{part.at()}: {kind}: expected named settings, found {part.data!r:.40}")
        return None
    body = dict(cast(dict[str, Any], part.data))
    name: object = body.get("name")
    draft = Document(kind, name if isinstance(name, str) else "", body, part)
    if found := [*_misreferred(kind, body)]:
        problems += [draft.problem(place, message) for place, message in found]
        return None
    for field_name, (ids, _) in REFERENCES[kind].items():
        if field_name in body:
            body[ids] = body.pop(field_name)
    try:
        entity = MODELS[kind].model_validate(body)
    except ValidationError as error:
        found = mistakes(MODELS[kind], body, error)
        problems += [draft.problem(_in_file(kind, one.place), one.message) for one in found]
        return None
    document = document_of(kind, entity, {})
    return replace(document, located=part)


def _misreferred(kind: DefinitionKind, body: Mapping[str, Any]) -> Iterable[tuple[Place, str]]:
    """References in another form than files have: by id, or one name twice."""
    for field_name, (ids, target) in REFERENCES[kind].items():
        for other in (ids, to_snake(ids), ids.removesuffix("s"), to_snake(ids).removesuffix("s")):
            if other in body:
                yield (other,), f"files refer by name; write {field_name}: [name of a {target}, …]"
        seen: set[str] = set()
        given: object = body.get(field_name)
        for place, one in enumerate(cast(list[Any], given) if isinstance(given, list) else []):
            if isinstance(one, str) and name_key(one) in seen:
                yield (field_name, place), f'"{one}" is named twice'
            seen.add(name_key(one) if isinstance(one, str) else "")


def _in_file(kind: DefinitionKind, place: Place) -> Place:
    """A place in a model as the place in the file: references have other names there."""
    names: dict[str | int, str] = {ids: field_name for field_name, (ids, _) in REFERENCES[kind].items()}
    return (names.get(place[0], place[0]), *place[1:]) if place else place


def check_references(
    documents: Iterable[Document], known: Mapping[DefinitionKind, Iterable[str]]
) -> list[str]:
    """References to names that are not there."""
    names = {kind: list(found) for kind, found in known.items()}
    keys = {kind: {name_key(name) for name in found} for kind, found in names.items()}
    return [
        document.problem(
            (field_name, place), f'there is no {target} called "{wanted}"{closest(wanted, names[target])}'
        )
        for document in documents
        for field_name, (_, target) in REFERENCES[document.kind].items()
        for place, wanted in enumerate(document.body.get(field_name, []))
        if name_key(wanted) not in keys[target]
    ]


def spelled_as_defined(document: Document, spelling: Mapping[tuple[DefinitionKind, str], str]) -> Document:
    """A document that spells the names it refers to as they are defined: case does not count."""
    body = dict(document.body)
    for field_name, (_, target) in REFERENCES[document.kind].items():
        if field_name in body:
            body[field_name] = [spelling.get((target, name_key(one)), one) for one in body[field_name]]
    return replace(document, body=body)


def raise_problems(problems: list[str]) -> None:
    """One error with everything that is wrong, if anything is."""
    if len(problems) == 1:
        raise ConfigError(problems[0])
    if problems:
        raise ConfigError("\n  ".join([f"{len(problems)} problems:", *problems]))


Format = Literal["yaml", "json"]
_LONGEST_NAME = 60
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)\Z")
_AWKWARD = re.compile("[\r\x85\u2028\u2029\ufeff]|[ \t]\n|\\A[ \n]")


class _Dumper(yaml.SafeDumper):
    """Quotes whatever this or any other reader of YAML would take for something else than text."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: Any, value: str) -> yaml.Node:
    style = '"' if _AWKWARD.search(value) else "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)


# PyYAML says nothing of the types of its own registries.
_registry: Any = _Dumper
_registry.add_representer(str, _text)
for _kind, _pattern in PLAIN.items():
    _registry.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", _pattern, None)


def to_yaml(data: Any) -> str:
    return yaml.dump(data, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=100)


def to_json(data: Any) -> str:
    import orjson

    return orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def to_text(data: Any, form: Format) -> str:
    return to_json(data) if form == "json" else to_yaml(data)


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
