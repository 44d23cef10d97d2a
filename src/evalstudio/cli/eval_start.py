"""Starting an eval, here or on a server: what of it to run, by name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..base.lazy_dataclass import dataclass
from .output import plain, warn
from .project import LocalProject, Project, RemoteProject
from .run_files import warn_of_changed_files

if TYPE_CHECKING:
    from ..execution.request import ExecutionRequest
    from ..project.documents import DefinitionKind
    from ..project.entities import AgentErrors, Execution, StoredEval
    from ..project.requirements import Budget, Requirement
    from ..storage.contract import Records

# How long a stopped command waits for the answer that says whether the execution was started.
_LAST_ANSWER_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Part:
    """What of an eval to run, by name."""

    name: str | None
    only: tuple[str, ...]
    connectors: tuple[str, ...]
    repeat: int | None
    last_failed: bool
    labels: dict[str, str]
    requirements: tuple[Requirement, ...] = ()
    budget: Budget | None = None
    until_decided: bool = False
    agent_errors: AgentErrors = "error"


async def start(project: Project, part: Part, stop: asyncio.Event) -> Execution | None:
    """The started execution, or nothing if the command was stopped before it was known to have started."""
    prepare = _prepared_here if isinstance(project, LocalProject) else _prepared_there
    start = await prepare(cast(Any, project), part)
    if stop.is_set():
        warn("Stopped. Nothing was started.")
        return None
    starting, stopping = asyncio.ensure_future(start()), asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        warn("Stopping; waiting for the answer that says whether it was started (Ctrl-C again: at once).")
    # A request that is on its way may start the execution, so its answer is worth a short wait.
    done, _ = await asyncio.wait((starting,), timeout=_LAST_ANSWER_SECONDS)
    if done:
        return starting.result()
    starting.cancel()
    warn("Stopped. Whether the execution was started is not known; see: evalstudio execution list --server …")
    return None


async def _prepared_here(project: LocalProject, part: Part) -> Callable[[], Awaitable[Execution]]:
    from ..execution.request import start_execution

    return partial(start_execution, project.workspace, await _request_here(project, part))


async def _request_here(project: LocalProject, part: Part) -> ExecutionRequest:
    from ..execution.request import only_failed, request_for

    workspace = project.workspace
    chosen = await find_eval(workspace.store, part.name)
    request = await request_for(
        workspace, chosen, only=part.only, connectors=part.connectors, repetitions=part.repeat
    )
    if part.last_failed:
        request = await only_failed(workspace.store, request)
    await warn_of_changed_files(project, request)
    return replace(
        request,
        labels=dict(part.labels),
        requirements=[*request.requirements, *part.requirements],
        budget=part.budget or request.budget,
        until_decided=part.until_decided,
        agent_errors=part.agent_errors,
    )


async def _prepared_there(project: RemoteProject, part: Part) -> Callable[[], Awaitable[Execution]]:
    """The request to the server, which knows things by their ids."""
    from uuid import uuid4

    from ..execution.definitions import find, load_project_state
    from ..execution.labels import automatic_labels

    chosen = await find_eval(project.records, part.name)
    state = await load_project_state(project.records) if part.only or part.connectors else None

    def ids(kind: DefinitionKind, names: tuple[str, ...]) -> list[str] | None:
        return [state.entity(find(state, kind, one).key).id for one in names] if state and names else None

    return partial(
        project.client.start,
        chosen.id,
        repetitions=part.repeat,
        # The code under test is here, not on the server.
        labels={**automatic_labels(Path.cwd()), **part.labels},
        scenarioIds=ids("scenario", part.only),
        connectorIds=ids("connector", part.connectors),
        lastFailed=part.last_failed,
        requirements=[plain(one) for one in part.requirements],
        budget=plain(part.budget) if part.budget else None,
        until_decided=part.until_decided,
        agentErrors=part.agent_errors,
        trigger="cli",
        # An answer that was lost on the way is asked for again without starting anything twice.
        key=uuid4().hex,
    )


async def find_eval(records: Records, name: str | None) -> StoredEval:
    """The eval of this name or id; without a name, the only one."""
    from ..base.problems import InvalidInput, Problem, suggestion
    from ..project.entities import StoredEval

    page = await records.list_of("eval", limit=500)
    evals = [item for item in page.items if isinstance(item, StoredEval)]
    names = [item.name for item in evals]
    if name is None:
        if len(evals) == 1:
            return evals[0]
        if not evals:
            raise InvalidInput('there is no eval yet; define one in a file and run "evalstudio apply FILE"')
        raise InvalidInput(f"there are several evals; name one: {', '.join(sorted(names))}")
    for item in evals:
        if item.id == name or item.name.casefold() == name.casefold():
            return item
    raise InvalidInput(Problem(f'there is no eval called "{name}"', hint=suggestion(name, names)))
