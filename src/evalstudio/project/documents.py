"""Definitions as documents: what a file says of one entity, with references by name instead of id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import BaseModel, ValidationError

from ..configs import closest, readable
from ..conversation.definitions import Persona, Scenario
from ..files import ConfigError
from .entities import Connector, Eval, name_key
from .marked_files import Marked

Kind = Literal["persona", "connector", "scenario", "eval"]

# In the order in which they refer to each other.
KINDS: tuple[Kind, ...] = ("persona", "connector", "scenario", "eval")
MODELS: dict[Kind, type[BaseModel]] = {
    "persona": Persona,
    "connector": Connector,
    "scenario": Scenario,
    "eval": Eval,
}
REFERENCES: dict[Kind, dict[str, tuple[str, Kind]]] = {
    "persona": {},
    "connector": {},
    "scenario": {"personas": ("personaIds", "persona")},
    "eval": {"scenarios": ("scenarioIds", "scenario"), "connectors": ("connectorIds", "connector")},
}
MASK = "********"
_SENSITIVE = re.compile(r"auth|token|secret|key|password|cookie|session", re.IGNORECASE)
_STORED = {"id", "created_at", "updated_at", "version"}


@dataclass(frozen=True, slots=True)
class Document:
    """One definition, in the form files have."""

    kind: Kind
    name: str
    body: dict[str, Any]
    source: str = ""

    @property
    def key(self) -> tuple[Kind, str]:
        return self.kind, name_key(self.name)


def is_secret(header: str, value: str) -> bool:
    """Whether a header's value must not be shown: not a reference, and named like a secret."""
    return bool(_SENSITIVE.search(header)) and not re.fullmatch(r"[^$]*\$\{[^{}]+\}[^$]*", value)


def document_of(kind: Kind, entity: BaseModel, names: Mapping[str, str]) -> Document:
    """A definition as a document. ``names`` are those of everything that may be referred to, by id."""
    body = entity.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=_STORED)
    for field, (ids, _) in REFERENCES[kind].items():
        if ids in body:
            body[field] = [names.get(one, one) for one in body.pop(ids)]
    headers: dict[str, str] = body.get("headers") or {}
    for header, value in headers.items():
        if is_secret(header, value):
            headers[header] = MASK
    return Document(kind, cast(str, body["name"]), {"name": body.pop("name"), **body})


def read_documents(marked: Marked, problems: list[str]) -> list[Document]:
    """The definitions in one file; what is wrong is added to the problems, with its line."""
    found: list[Document] = []
    for kind, part in _parts(marked, problems):
        document = _read_one(kind, part, problems)
        if document is not None:
            found.append(document)
    return found


def _parts(marked: Marked, problems: list[str]) -> Iterable[tuple[Kind, Marked]]:
    data = marked.data
    if isinstance(data, list):
        for place in range(len(cast(list[Any], data))):
            yield from _parts(marked.part((place,)), problems)
    elif not isinstance(data, dict):
        problems.append(f"{marked.at(())}: expected definitions, found {data!r}")
    elif "kind" in data:
        given = cast(dict[str, Any], data)["kind"]
        if given in KINDS:
            body = {key: item for key, item in cast(dict[str, Any], data).items() if key != "kind"}
            yield given, Marked(marked.path, body, marked.lines)
        else:
            hint = closest(str(given), KINDS)
            problems.append(f'{marked.at(("kind",))}: kind: "{given}" is not one of {", ".join(KINDS)}{hint}')
    else:
        yield from _groups(marked, problems)


def _groups(marked: Marked, problems: list[str]) -> Iterable[tuple[Kind, Marked]]:
    """A file may hold many: ``scenarios: [...]``, ``personas: [...]`` and so on."""
    plurals: dict[str, Kind] = {f"{kind}s": kind for kind in KINDS}
    for key, items in cast(dict[str, Any], marked.data).items():
        if key not in plurals:
            hint = closest(key, [*plurals, "kind"])
            problems.append(f'{marked.at((key,))}: unknown key "{key}"{hint or "; give a kind"}')
        elif not isinstance(items, list):
            problems.append(f"{marked.at((key,))}: {key}: expected a list")
        else:
            for place in range(len(cast(list[Any], items))):
                yield plurals[key], marked.part((key, place))


def _read_one(kind: Kind, part: Marked, problems: list[str]) -> Document | None:
    if not isinstance(part.data, dict):
        problems.append(f"{part.at(())}: expected a {kind} with named settings")
        return None
    body = dict(cast(dict[str, Any], part.data))
    for field, (ids, _) in REFERENCES[kind].items():
        if ids in body:
            problems.append(f"{part.at((ids,))}: {ids}: files refer by name; write {field}: [name, …]")
            return None
        if field in body:
            body[ids] = body.pop(field)
    try:
        entity = MODELS[kind].model_validate(body)
    except ValidationError as error:
        problems += [_problem(kind, part, item) for item in zip(error.errors(), readable(error), strict=True)]
        return None
    document = document_of(kind, entity, {})
    return Document(kind, document.name, document.body, part.at(()))


def _problem(kind: Kind, part: Marked, item: tuple[Any, tuple[str, str]]) -> str:
    error, (path, message) = item
    place = tuple(error["loc"])
    back = {ids: field for field, (ids, _) in REFERENCES[kind].items()}
    if place and place[0] in back:
        place = (back[place[0]], *place[1:])
        path = path.replace(next(iter(k for k in back if path.startswith(k))), str(place[0]), 1)
    name = part.data.get("name")
    of = f' of {kind} "{name}"' if isinstance(name, str) else ""
    return f"{part.at(place)}: {path or 'it'}{of}: {message}"


def check_references(documents: Iterable[Document], known: Mapping[Kind, Iterable[str]]) -> list[str]:
    """References to names that are not there."""
    problems: list[str] = []
    for document in documents:
        for field, (_, target) in REFERENCES[document.kind].items():
            names = list(known[target])
            keys = {name_key(name) for name in names}
            problems += [
                f'{document.source}: {field} of {document.kind} "{document.name}": '
                f'there is no {target} called "{wanted}"{closest(wanted, names)}'
                for wanted in document.body.get(field, [])
                if name_key(wanted) not in keys
            ]
    return problems


def raise_problems(problems: list[str]) -> None:
    if problems:
        heading = "1 problem:" if len(problems) == 1 else f"{len(problems)} problems:"
        raise ConfigError("\n  ".join([heading, *problems]))
