"""Starting an execution: an eval multiplied out into runs, all of them checked before any is queued."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import product
from typing import Any, TypeVar

from ..base.lazy_dataclass import dataclass
from ..base.problems import MOST_PROBLEMS, InvalidInput, Problem, ProblemList, suggestion
from ..conversation.definitions import Case
from ..conversation.preparation import check_case_values
from ..project.documents import check_stored
from ..project.entities import (
    UNFINISHED,
    AgentErrors,
    Execution,
    RunSummary,
    Stored,
    StoredConnector,
    StoredEval,
    StoredPersona,
    StoredScenario,
)
from ..project.requirements import Budget, Requirement
from ..project.secrets import check_recipient
from ..project.validation import cases_of, check_connector, check_scenario
from ..storage.contract import Filters, IdempotencyKey, NewRun, Records, Snapshot, all_runs
from ..storage.errors import NotFound
from .environment import environment_snapshot
from .labels import with_automatic_labels
from .workspace import Workspace

T = TypeVar("T")

MOST_RUNS = 1_000_000
YIELD_EVERY = 1_000


class NothingFailed(InvalidInput):
    """What was asked for again has passed already."""


@dataclass(frozen=True, slots=True)
class ExecutionRequest:
    """What to run: scenarios against connectors, so many times."""

    scenarios: Sequence[StoredScenario]
    connectors: Sequence[StoredConnector]
    repetitions: int = 1
    eval: StoredEval | None = None
    trigger: str = "cli"
    labels: dict[str, Any] = field(default_factory=dict[str, Any])
    requirements: Sequence[Requirement] = ()
    budget: Budget | None = None
    until_decided: bool = False
    """Repeat only what is still open, at most so many times."""
    agent_errors: AgentErrors = "error"
    only_subjects: frozenset[tuple[str, str | None, str | None, str]] | None = None

    @property
    def partial(self) -> str | None:
        """Why this is not the whole eval."""
        if self.eval is None:
            return None
        left_out = {
            "only": set(self.eval.scenario_ids) - {scenario.id for scenario in self.scenarios},
            "connectors": set(self.eval.connector_ids) - {connector.id for connector in self.connectors},
            "last-failed": self.only_subjects is not None,
            # Whether there are to be further repetitions is decided when these runs are over.
            UNFINISHED: self.until_decided,
        }
        return ", ".join(reason for reason, missing in left_out.items() if missing) or None


async def request_for(
    workspace: Workspace,
    stored: StoredEval,
    *,
    only: Sequence[str] = (),
    connectors: Sequence[str] = (),
    repetitions: int | None = None,
) -> ExecutionRequest:
    """What running an eval takes, narrowed to some of its scenarios or turned to other connectors by name."""
    check_stored(stored)
    store = workspace.store
    scenarios = [await store.get("scenario", one) for one in stored.scenario_ids]
    if only:
        scenarios = [_named(scenarios, name) for name in only]
    chosen: list[StoredConnector] = []
    for name in connectors:
        if (connector := await store.find("connector", name)) is None:
            raise InvalidInput(f'there is no connector called "{name}"')
        chosen.append(connector)
    chosen = chosen or [await store.get("connector", one) for one in stored.connector_ids]
    times = repetitions or stored.repetitions or workspace.config.defaults.repetitions or 1
    return ExecutionRequest(
        scenarios, chosen, times, stored, requirements=stored.requirements, budget=stored.budget
    )


async def only_failed(
    records: Records, request: ExecutionRequest, execution_id: str | None = None
) -> ExecutionRequest:
    """The part of a request that did not pass in an execution of its eval, the last one unless named."""
    assert request.eval is not None
    name, which = request.eval.name, f"execution {execution_id}"
    if execution_id is None:
        page = await records.executions(Filters(eval_id=request.eval.id, source="live"), limit=1)
        if not page.items:
            raise InvalidInput(f'"{name}" has not been run yet, so nothing has failed')
        execution_id, which = page.items[0].id, "the last execution"
    subjects = frozenset(
        [
            _subject(run)
            async for run in all_runs(records, Filters(execution_id=execution_id))
            if run.result is None or run.result.outcome in ("fail", "error")
        ]
    )
    if not subjects:
        raise NothingFailed(f'nothing failed or errored in {which} of "{name}"; nothing to run again')
    return replace(request, only_subjects=subjects)


async def only_runs(records: Records, request: ExecutionRequest, run_ids: Sequence[str]) -> ExecutionRequest:
    """The part of a request that these runs ran before."""
    return replace(request, only_subjects=frozenset([_subject(await records.run(one)) for one in run_ids]))


def _subject(run: RunSummary) -> tuple[str, str | None, str | None, str]:
    return str(run.scenario_id), run.persona_id, run.case_name, str(run.connector_id)


def _named(scenarios: Sequence[StoredScenario], name: str) -> StoredScenario:
    for scenario in scenarios:
        if scenario.name.casefold() == name.casefold():
            return scenario
    names = ", ".join(scenario.name for scenario in scenarios)
    raise InvalidInput(f'there is no scenario of this eval called "{name}"; there are {names}')


async def trial_request(
    workspace: Workspace,
    scenario_id: str,
    connector_id: str,
    *,
    persona_id: str | None = None,
    case_name: str | None = None,
    repetitions: int = 1,
    labels: dict[str, Any] | None = None,
) -> ExecutionRequest:
    """One scenario against one connector, as one of its personas and with one of its cases if asked for."""
    scenario = await _referred("scenarioId", workspace.store.get("scenario", scenario_id))
    connector = await _referred("connectorId", workspace.store.get("connector", connector_id))
    if persona_id is not None:
        await _referred("personaId", workspace.store.get("persona", persona_id))
        scenario = scenario.model_copy(update={"persona_ids": [persona_id]})
    if case_name is not None:
        scenario = await _with_case(workspace, scenario, case_name)
    return ExecutionRequest([scenario], [connector], repetitions, trigger="try", labels=labels or {})


async def _referred(field: str, reading: Awaitable[T]) -> T:
    """What a field of the request refers to."""
    try:
        return await reading
    except NotFound as error:
        raise InvalidInput(Problem(str(error), (field,))) from None


async def _with_case(workspace: Workspace, scenario: StoredScenario, name: str) -> StoredScenario:
    cases = await asyncio.to_thread(cases_of, scenario, workspace.folder)
    names = [case.name or f"case {number}" for number, case in enumerate(cases, 1)]
    if name not in names:
        message = f'the scenario has no case "{name}"'
        raise InvalidInput(Problem(message, ("caseName",), suggestion(name, names)))
    case = cases[names.index(name)].model_copy(update={"name": name})
    return scenario.model_copy(update={"cases": [case]})


async def start_execution(
    workspace: Workspace, request: ExecutionRequest, *, once: IdempotencyKey | None = None
) -> Execution:
    """Check every run of a request and queue them."""
    runs: list[NewRun] = []
    first = replace(request, repetitions=1) if request.until_decided else request
    async for run in checked_runs(workspace, first):
        runs.append(run)
        if len(runs) % YIELD_EVERY == 0:
            # A server has other requests to answer while it multiplies out a large eval.
            await asyncio.sleep(0)
    if not runs:
        raise InvalidInput("there is nothing to run")
    execution = Execution(
        eval_id=request.eval.id if request.eval else None,
        eval_name=request.eval.name if request.eval else None,
        trigger=request.trigger,
        labels=await with_automatic_labels(request.labels, workspace.folder),
        partial=request.partial,
        replayed=workspace.cassette is not None and workspace.cassette.replaying,
        requirements=[*request.requirements],
        budget=request.budget,
        until_decided=request.repetitions if request.until_decided else None,
        agent_errors=request.agent_errors,
    )
    environment = await asyncio.to_thread(
        environment_snapshot, workspace, request.scenarios, request.connectors
    )
    return await workspace.store.enqueue(execution, runs, once=once, environment=environment)


async def checked_runs(workspace: Workspace, request: ExecutionRequest) -> AsyncIterator[NewRun]:
    """The runs of a request; what cannot be run is raised."""
    configs: dict[str, Any] = {}
    for connector in request.connectors:
        check_stored(connector)
        try:
            definition = check_connector(connector, workspace.registry)
            configs[connector.name] = definition.settings(connector.config).config
        except InvalidInput as error:
            raise error.within(subject=f'connector "{connector.name}"') from None
    count = 0
    for scenario in request.scenarios:
        check_stored(scenario)
        personas = [await workspace.store.get("persona", one) for one in scenario.persona_ids]
        for persona in personas:
            check_stored(persona)
        try:
            cases = check_scenario(
                scenario,
                workspace.registry,
                workspace.folder,
                personas=[*personas],
                has_model=workspace.has_model,
            )
        except InvalidInput as error:
            raise error.within(subject=f'scenario "{scenario.name}"') from None
        _check_requests(scenario, cases, configs)
        for persona, connector in product(personas, request.connectors):
            check_recipient(persona, connector.id, connector.name)
        for run in _multiplied(scenario, cases, personas, request):
            count += 1
            if count > MOST_RUNS:
                raise InvalidInput(f"this would be more than {MOST_RUNS:,} runs; run less at once")
            yield run


def _check_requests(scenario: StoredScenario, cases: Sequence[Case], configs: Mapping[str, Any]) -> None:
    """What a connector sends may ask for values of the case: every case must have them."""
    problems = ProblemList()
    for name, config in configs.items():
        for case in cases or [None]:
            with problems.collect(subject=f'scenario "{scenario.name}" on connector "{name}"'):
                check_case_values(config, case)
            if len(problems) > MOST_PROBLEMS:
                break
    problems.check()


def _multiplied(
    scenario: StoredScenario,
    cases: Sequence[Case],
    personas: Sequence[StoredPersona],
    request: ExecutionRequest,
) -> Iterator[NewRun]:
    # Cases are rows of their own; a snapshot per scenario keeps them out, so that it is shared by all.
    scenario_snapshot = _snapshot(scenario, "cases")
    persona_snapshots = {persona.id: _snapshot(persona) for persona in personas}
    for connector in request.connectors:
        connector_snapshot = _snapshot(connector)
        for persona in personas or [None]:
            for number, case in enumerate(cases or [None], 1):
                body = _case_json(case, number)
                persona_id = persona.id if persona else None
                subject = (scenario.id, persona_id, body and body["name"], connector.id)
                if request.only_subjects is not None and subject not in request.only_subjects:
                    continue
                for repetition in range(1, request.repetitions + 1):
                    yield NewRun(
                        scenario=scenario_snapshot,
                        connector=connector_snapshot,
                        persona=persona_snapshots[persona.id] if persona else None,
                        scenario_id=scenario.id,
                        scenario_name=scenario.name,
                        persona_id=persona_id,
                        persona_name=persona.name if persona else None,
                        connector_id=connector.id,
                        connector_name=connector.name,
                        case=body,
                        repetition=repetition,
                    )


def _snapshot(entity: Stored, *left_out: str) -> Snapshot:
    exclude = {*Stored.model_fields, *left_out}
    return Snapshot.of(entity.model_dump(mode="json", by_alias=True, exclude=exclude))


def _case_json(case: Case | None, number: int) -> dict[str, Any] | None:
    if case is None:
        return None
    body = case.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {**body, "name": case.name or f"case {number}"}
