"""Scenarios and evals in files as test items: one for each scenario, case, persona and connector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from ..base.concurrency import run_sync
from ..base.problems import InvalidInput
from ..base.text import printable
from ..conversation.definitions import Case
from ..execution.request import ExecutionRequest
from ..plugins import PluginError
from ..project.documents import Document
from ..project.entities import StoredConnector, StoredEval, StoredPersona, StoredScenario, name_key
from ..project.validation import cases_of
from . import RUNS
from .definitions import FileDefinitions, ReadFiles
from .engine import Engine
from .results import ScenarioResult, run_result

_BRACKETS = str.maketrans("[]", "()")
N = TypeVar("N", bound=pytest.Collector | pytest.Item)


def _made(node: type[N], parent: pytest.Collector, **options: Any) -> N:
    """A node of the tree of tests; pytest says nothing of the types of what it takes for one."""
    return cast(Any, node).from_parent(parent, **options)


def chosen_files(config: pytest.Config) -> frozenset[Path]:
    """The files to collect."""
    try:
        return FileDefinitions.of(config).files
    except InvalidInput as error:
        raise pytest.UsageError(f"evalstudio_files: {error}") from None


class DefinitionFile(pytest.File):
    """A file of definitions: its evals, and its scenarios that are in no eval."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        definitions = self._definitions()
        own = definitions.in_file(self.path)
        for document in own:
            if document.kind == "eval":
                yield _made(EvalCollector, self, name=_safe(document.name), document=document)
        used = {
            name_key(name)
            for document in definitions.documents
            if document.kind == "eval"
            for name in document.body["scenarios"]
        }
        for document in own:
            if document.kind == "scenario" and document.key[1] not in used:
                scenario = definitions.state.entity(document.key)
                yield from items(self, scenario, _connectors(self.config, definitions), None)

    def _definitions(self) -> ReadFiles:
        try:
            return FileDefinitions.of(self.config).collected()
        except (InvalidInput, PluginError) as error:
            # One of many files is enough to tell it in.
            first = min(chosen_files(self.config))
            told = str(error) if self.path == first else f"the definitions cannot be used; see {first}"
            raise self.CollectError(told) from None


class EvalCollector(pytest.Collector):
    """An eval with an item for each of its subjects."""

    def __init__(self, *, document: Document, **options: Any) -> None:
        cast(Any, super()).__init__(**options)
        self._document = document

    def collect(self) -> Iterable[pytest.Item]:
        state = FileDefinitions.of(self.config).collected().state
        stored: StoredEval = state.entity(self._document.key)
        by_id = {entity.id: entity for entity in state.entities.values()}
        connectors = [by_id[one] for one in stored.connector_ids]
        for one in stored.scenario_ids:
            yield from items(self, by_id[one], connectors, stored)


def _connectors(config: pytest.Config, definitions: ReadFiles) -> list[StoredConnector] | str:
    """The connector of scenarios that are in no eval, or why there is none."""
    known: list[StoredConnector] = definitions.state.of_kind("connector")
    name = config.getoption("evalstudio_connector") or config.getini("evalstudio_connector")
    if name:
        named = [one for one in known if name_key(one.name) == name_key(name)]
        return named or f'the files define no connector called "{name}"'
    if len(known) == 1:
        return known
    names = ", ".join(sorted(one.name for one in known)) or "none"
    return f"it is in no eval; name a connector with evalstudio_connector (the files define {names})"


def items(
    parent: pytest.Collector,
    scenario: StoredScenario,
    connectors: list[StoredConnector] | str,
    of_eval: StoredEval | None,
) -> Iterator[SubjectItem]:
    """An item for each case and persona of a scenario on each connector."""
    definitions = FileDefinitions.of(parent.config).collected()
    people = {one.id: one for one in definitions.state.of_kind("persona")}
    cases = cases_of(scenario, Engine.of(parent.config).folder)
    agents = [None] if isinstance(connectors, str) else connectors
    personas = [people[one] for one in scenario.persona_ids]
    for agent, persona, (number, case) in product(agents, personas or [None], enumerate(cases or [None], 1)):
        row = case and case.model_copy(update={"name": case.name or f"case {number}"})
        yield _made(
            SubjectItem,
            parent,
            name=_name(scenario, row, persona, agent if len(agents) > 1 else None),
            scenario=_narrowed(scenario, row, persona),
            connector=agent or str(connectors),
            of_eval=of_eval,
        )


def _name(
    scenario: StoredScenario, case: Case | None, persona: StoredPersona | None, agent: StoredConnector | None
) -> str:
    parts = [_safe(str(one.name)) for one in (case, persona, agent) if one is not None]
    return _safe(scenario.name) + (f"({'-'.join(parts)})" if parts else "")


def _safe(name: str) -> str:
    """A name as one part of a node id. pytest itself gives a meaning to :: and to brackets."""
    return printable(name, kept="", instead="?").replace("::", ":").translate(_BRACKETS)


def _narrowed(scenario: StoredScenario, case: Case | None, persona: StoredPersona | None) -> StoredScenario:
    personas = [persona.id] if persona else []
    return scenario.model_copy(update={"cases": [case] if case else [], "persona_ids": personas})


class NotPassed(Exception):
    """What an item came to, where that is not a pass."""

    def __init__(self, result: ScenarioResult) -> None:
        super().__init__(str(result))


class SubjectItem(pytest.Item):
    """One scenario with its case and persona on one connector; its repetitions must all pass."""

    def __init__(
        self,
        *,
        scenario: StoredScenario,
        connector: StoredConnector | str,
        of_eval: StoredEval | None,
        **options: Any,
    ) -> None:
        cast(Any, super()).__init__(**options)
        self._scenario, self._connector, self._eval = scenario, connector, of_eval
        self.add_marker("evalstudio")
        self.extra_keyword_matches.update(scenario.tags)

    def runtest(self) -> None:
        if isinstance(self._connector, str):
            raise InvalidInput(f'scenario "{self._scenario.name}" cannot be run: {self._connector}')
        finished = run_sync(lambda: self._run(self._connectors()))
        self.stash[RUNS] = finished
        result = ScenarioResult([run_result(one, repeated=len(finished) > 1) for one in finished])
        if not result.passed:
            raise NotPassed(result)

    def _connectors(self) -> Sequence[StoredConnector]:
        return [] if isinstance(self._connector, str) else [self._connector]

    async def _run(self, connectors: Sequence[StoredConnector]) -> Any:
        engine = Engine.of(self.config)
        state = FileDefinitions.of(self.config).collected().state
        times = (self._eval.repetitions if self._eval else None) or engine.repetitions
        request = ExecutionRequest([self._scenario], connectors, times, self._eval, trigger="pytest")
        return await engine.run(request, state, at_once=None)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, NotPassed | InvalidInput | PluginError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.nodeid.partition("::")[2]
