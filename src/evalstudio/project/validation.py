"""Whether definitions can be used with what is registered here, and the cases of a scenario."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from ..base.files import read_text
from ..base.located import parse_json
from ..base.problems import MOST_PROBLEMS, InvalidInput, Problem, ProblemList, problems_of, suggestion
from ..connectors.contract import ConnectorDefinition
from ..conversation.definitions import Case, Persona, Scenario
from ..conversation.preparation import prepare
from ..messages import Message
from ..plugins import PluginRegistry
from .entities import Connector
from .monitors import Monitor
from .secrets import check_address, check_references, is_address, is_secret


def check_scenario(
    scenario: Scenario,
    registry: PluginRegistry,
    folder: Path,
    *,
    personas: list[Persona] | None = None,
    has_model: bool,
) -> list[Case]:
    """The scenario's cases, all of which can be prepared with every persona."""
    problems = ProblemList()
    cases: list[Case] = []
    with problems.collect():
        cases = cases_of(scenario, folder)
    for case in cases or [None]:
        for persona in personas or [None]:
            wrong = ProblemList()
            with wrong.collect():
                prepare(scenario, registry, case=case, persona=persona, has_model=has_model)
            problems += [one for one in wrong if one not in problems]
        if len(problems) > MOST_PROBLEMS:
            break
    problems.check()
    return cases


def check_connector(connector: Connector, registry: PluginRegistry) -> ConnectorDefinition:
    """The connector's type; everything that is wrong with the connector is raised."""
    problems = ProblemList()
    with problems.collect():
        check_address(connector.base_url)
    with problems.collect():
        sent = {"baseUrl": connector.base_url, "headers": connector.headers, "config": connector.config}
        check_references(sent)
    definition = registry.get_connector(connector.type)
    if definition is None:
        known = [item["type"] for item in registry.list_connector_types()]
        message = f'no connector type is called "{connector.type}"'
        problems.append(Problem(message, ("type",), suggestion(connector.type, known, "there are")))
    else:
        with problems.collect("config"):
            definition.settings(connector.config)
        address = (connector.base_url or "").strip()
        if definition.needs_address and not address:
            message = f"a connector of type {connector.type} needs the agent's address"
            problems.append(Problem(message, ("baseUrl",)))
        elif definition.needs_address and not is_address(address):
            message = f'"{address[:100]}" is no address; it needs a scheme and a host'
            problems.append(Problem(message, ("baseUrl",), "such as http://127.0.0.1:8000"))
    problems.check()
    assert definition is not None, "an unknown type is a problem"
    return definition


# A conversation that a monitor reviews has begun already.
_SPOKEN = [Message(role="user", content="…")]


def check_monitor(monitor: Monitor, registry: PluginRegistry) -> None:
    """Whether what a monitor judges by can be prepared, and its alarms may be sent."""
    problems = ProblemList()
    if (webhook := monitor.alarm.webhook) is not None:
        with problems.collect():
            check_address(webhook.url, ("alarm", "webhook", "url"))
    if not monitor.scenario_ids:
        with problems.collect():
            scenario = monitor.own_scenario().model_copy(update={"messages": _SPOKEN})
            prepare(scenario, registry, has_model=True)
    problems.check()


MOST_CASES = 100_000
_MOST_BYTES = 200_000_000
_CASE_KEYS = frozenset({"name", "vars", "groundTruth", "context"})
_SUFFIXES = (".csv", ".jsonl", ".ndjson")

# Each row with its file and line.
Rows = Iterator[tuple[str, dict[str, Any]]]


def cases_of(scenario: Scenario, folder: Path) -> list[Case]:
    """The cases of a scenario; none means one run without values."""
    try:
        if isinstance(scenario.cases, list):
            return _with_own_names(scenario.cases)
        path = inside(folder, scenario.cases)
        return cases_in(path, _case_text(path))
    except InvalidInput as error:
        # Paths are reported relative to the project folder.
        root = f"{folder.resolve()}/"
        problems = [replace(one, place=one.place.removeprefix(root)) for one in error.problems]
        raise InvalidInput(*(Problem(str(one), ("cases",)) for one in problems)) from None


def _case_text(path: Path) -> str:
    _check_suffix(path)
    return read_text(path, _MOST_BYTES)


def cases_in(path: Path, text: str) -> list[Case]:
    """The cases in the text of a file of this name."""
    problems = ProblemList()
    cases: list[Case] = []
    for place, row in _rows(path, text, problems):
        if len(cases) == MOST_CASES:
            raise InvalidInput.at(path, f"has more than {MOST_CASES:,} cases")
        with problems.collect():
            cases.append(_case(place, row))
        if len(problems) > MOST_PROBLEMS:
            break
    problems.check()
    if not cases:
        raise InvalidInput.at(path, "has no cases")
    with problems.collect():
        return _with_own_names(cases)
    raise InvalidInput(*(replace(one, place=str(path)) for one in problems))


def _with_own_names(cases: list[Case]) -> list[Case]:
    """Results are told apart by the names of their cases."""
    names = Counter(case.name or f"case {number}" for number, case in enumerate(cases, 1))
    twice = [name for name, count in names.most_common(MOST_PROBLEMS) if count > 1]
    ProblemList(Problem(f'two cases are called "{name}"') for name in twice).check()
    return cases


def inside(folder: Path, name: str) -> Path:
    """A path given by a user, resolved, that must not lead out of the project folder."""
    root = folder.resolve()
    try:
        path = (root / name).resolve()
    except (OSError, ValueError, RuntimeError):
        raise InvalidInput(f'"{name}" is not a usable path') from None
    if not path.is_relative_to(root):
        raise InvalidInput(Problem(f'"{name}" leads out of the project folder', hint="use a path inside it"))
    return path


def _check_suffix(path: Path) -> None:
    if path.suffix.lower() not in _SUFFIXES:
        raise InvalidInput.at(path, f"cases are read from {', '.join(_SUFFIXES)} files")


def _rows(path: Path, text: str, problems: ProblemList) -> Rows:
    _check_suffix(path)
    rows = _csv_rows if path.suffix.lower() == ".csv" else _json_rows
    return rows(path, text, problems)


def _csv_rows(path: Path, text: str, problems: ProblemList) -> Rows:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [cell.strip() for cell in next(reader, list[str]())]
        if len(set(header)) < len(header) or not all(header):
            raise InvalidInput.at(f"{path}:1", "every column needs a name of its own")
        for cells in filter(None, reader):
            place = f"{path}:{reader.line_num}"
            if len(cells) != len(header):
                message = f"has {len(cells)} cells, the header {len(header)}"
                problems.append(Problem(message, place=place))
                continue
            with problems.collect():
                row = dict(zip(header, cells, strict=True))
                yield place, _csv_row(path, reader.line_num, row)
    except csv.Error as error:
        raise InvalidInput.at(f"{path}:{reader.line_num}", f"not valid CSV: {error}") from None


def _csv_row(path: Path, line: int, row: dict[str, str]) -> dict[str, Any]:
    """A row in which what is empty is not given, and data is JSON."""
    values: dict[str, Any] = {key: cell for key, cell in row.items() if key not in _CASE_KEYS or cell.strip()}
    for key in ("vars", "context"):
        if key in values:
            values[key] = parse_json(values[key], str(path), first_line=line).data
    return values


def _json_rows(path: Path, text: str, problems: ProblemList) -> Rows:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        with problems.collect():
            row = parse_json(line, str(path), first_line=number).data
            if not isinstance(row, dict):
                raise InvalidInput.at(f"{path}:{number}", "expected an object with the values of a case")
            yield f"{path}:{number}", cast(dict[str, Any], row)


def _case(place: str, row: dict[str, Any]) -> Case:
    """A row: what is not part of a case by name is one of its values."""
    fields = {key: item for key, item in row.items() if key in _CASE_KEYS}
    values = {key: item for key, item in row.items() if key not in _CASE_KEYS}
    variables = fields.get("vars", {})
    if values and isinstance(variables, dict):
        fields["vars"] = {**values, **variables}
    try:
        return Case.model_validate(fields)
    except ValidationError as error:
        problems = problems_of(error, fields, Case, is_secret=is_secret)
        raise InvalidInput(*(replace(one, place=place) for one in problems)) from None
