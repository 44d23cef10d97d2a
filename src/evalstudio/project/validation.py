"""Whether definitions can be used with what is registered here, and the cases of a scenario."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..base.files import ConfigError
from ..base.located import Located, parse_json
from ..base.schemas import path_text
from ..configs import InvalidConfig, closest
from ..connectors.contract import ConnectorDefinition
from ..conversation.definitions import Case, Persona, Scenario
from ..conversation.preparation import InvalidScenario, prepare
from ..plugins import PluginRegistry
from .definition_files import read_text
from .entities import Connector
from .problems import mistakes
from .secrets import SecretError, check_address, check_references


class InvalidDefinition(ValueError):
    """A definition that cannot be used; the message names the field."""


def check_scenario(
    scenario: Scenario,
    registry: PluginRegistry,
    folder: Path,
    *,
    personas: list[Persona] | None = None,
    has_model: bool,
) -> list[Case]:
    """The scenario's cases, all of which can be prepared with every persona."""
    cases = cases_of(scenario, folder)
    for case in cases or [None]:
        for persona in personas or [None]:
            try:
                prepare(scenario, registry, case=case, persona=persona, has_model=has_model)
            except InvalidScenario as error:
                where = f'case "{case.name}": ' if case is not None and case.name else ""
                raise InvalidDefinition(f"{where}{error}".lstrip(".")) from None
    return cases


def check_connector(connector: Connector, registry: PluginRegistry) -> tuple[ConnectorDefinition, Any]:
    """The connector's type and its parsed config."""
    definition = registry.get_connector(connector.type)
    if definition is None:
        known = [item["type"] for item in registry.list_connector_types()]
        hint = closest(connector.type, known) or f"; there are {', '.join(known)}"
        raise InvalidDefinition(f'type: no connector type is called "{connector.type}"{hint}')
    try:
        check_address(connector.base_url)
        check_references({"baseUrl": connector.base_url, "headers": connector.headers})
    except SecretError as error:
        raise InvalidDefinition(str(error)) from None
    try:
        config = definition.config.parse(connector.type, connector.config)
    except InvalidConfig as error:
        path, message = error.problems[0]
        raise InvalidDefinition(f"config{'.' if path else ''}{path}: {message}") from None
    if definition.needs_address and not (connector.base_url or "").strip():
        raise InvalidDefinition(f"baseUrl: a connector of type {connector.type} needs the agent's address")
    return definition, config


MOST_CASES = 100_000
_MOST_BYTES = 200_000_000
_CASE_KEYS = frozenset({"name", "vars", "groundTruth", "context"})
_SUFFIXES = (".csv", ".jsonl", ".ndjson")

Rows = Iterator[tuple[int, dict[str, Any]]]


def cases_of(scenario: Scenario, folder: Path) -> list[Case]:
    """The cases of a scenario; none means one run without values."""
    if isinstance(scenario.cases, list):
        _check_names(scenario.cases, "cases")
        return scenario.cases
    try:
        return _cases_in(inside(folder, scenario.cases))
    except ConfigError as error:
        # Where the project lies is nobody's business who only defines scenarios.
        told = str(error).replace(f"{folder.resolve()}/", "")
        raise ConfigError(f"cases: {told}") from None


def _cases_in(path: Path) -> list[Case]:
    cases: list[Case] = []
    for line, row in _rows(path):
        if len(cases) == MOST_CASES:
            raise ConfigError(f"{path}: has more than {MOST_CASES:,} cases")
        cases.append(_case(path, line, row))
    if not cases:
        raise ConfigError(f"{path}: has no cases")
    _check_names(cases, str(path))
    return cases


def _check_names(cases: list[Case], where: str) -> None:
    """Results are told apart by the names of their cases."""
    seen: set[str] = set()
    for number, case in enumerate(cases, 1):
        name = case.name or f"case {number}"
        if name in seen:
            raise ConfigError(f'{where}: two cases are called "{name}"')
        seen.add(name)


def inside(folder: Path, name: str) -> Path:
    """A path given by a user, resolved, that must not lead out of the project folder."""
    root = folder.resolve()
    try:
        path = (root / name).resolve()
    except (OSError, ValueError, RuntimeError):
        raise ConfigError(f'"{name}" is not a usable path') from None
    if not path.is_relative_to(root):
        raise ConfigError(f'"{name}" leads out of the project folder; use a path inside it')
    return path


def _rows(path: Path) -> Rows:
    if path.suffix.lower() not in _SUFFIXES:
        raise ConfigError(f"{path}: cases are read from {', '.join(_SUFFIXES)} files")
    text = read_text(path, _MOST_BYTES)
    return _csv_rows(path, text) if path.suffix.lower() == ".csv" else _json_rows(path, text)


def _csv_rows(path: Path, text: str) -> Rows:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, list[str]())
        if len(set(header)) < len(header) or not all(name.strip() for name in header):
            raise ConfigError(f"{path}:1: every column needs a name of its own")
        for cells in reader:
            if cells and len(cells) != len(header):
                raise ConfigError(
                    f"{path}:{reader.line_num}: has {len(cells)} cells, the header {len(header)}"
                )
            if cells:
                yield reader.line_num, _csv_row(path, reader.line_num, dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise ConfigError(f"{path}:{reader.line_num}: not valid CSV: {error}") from None


def _csv_row(path: Path, line: int, row: dict[str, str]) -> dict[str, Any]:
    """A row in which what is empty is not given, and data is JSON."""
    found: dict[str, Any] = {key: cell for key, cell in row.items() if key not in _CASE_KEYS or cell.strip()}
    for key in ("vars", "context"):
        if key in found:
            found[key] = parse_json(found[key], str(path), first_line=line).data
    return found


def _json_rows(path: Path, text: str) -> Rows:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        row = parse_json(line, str(path), first_line=number).data
        if not isinstance(row, dict):
            raise ConfigError(f"{path}:{number}: expected an object with the values of a case")
        yield number, row


def _case(path: Path, line: int, row: dict[str, Any]) -> Case:
    """A row: what is not part of a case by name is one of its values."""
    known = {key: item for key, item in row.items() if key in _CASE_KEYS}
    values = {key: item for key, item in row.items() if key not in _CASE_KEYS}
    given = known.get("vars", {})
    if values and isinstance(given, dict):
        known["vars"] = {**values, **given}
    try:
        return Case.model_validate(known)
    except ValidationError as error:
        mistake = mistakes(Case, known, error)[0]
        where = Located(str(path), known, {(): line}).at()
        raise ConfigError(f"{where}: {path_text(mistake.place)}: {mistake.message}") from None
