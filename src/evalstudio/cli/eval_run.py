"""``evalstudio eval run``: run an eval, show it live, and say what it came to by the exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .output import print_json, warn
from .project import (
    ConfigOption,
    JsonOption,
    LocalProject,
    Project,
    RemoteProject,
    client_at,
    config_at_hand,
    run_async,
    server_url,
)

if TYPE_CHECKING:
    from ..execution.processor import Follow
    from ..execution.workspace import Workspace
    from ..project.documents import DefinitionKind
    from ..project.entities import Counts, Execution, RunSummary, StoredEval
    from ..storage.contract import Records

EXIT_FAILED, EXIT_ERRORED, EXIT_INTERRUPTED = 1, 3, 130


def eval_run(
    name: Annotated[str | None, typer.Argument(help="The eval; not needed where there is only one.")] = None,
    repeat: Annotated[int | None, typer.Option(min=1, help="Repetitions, instead of the eval's own.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only this scenario; may be repeated.")] = None,
    connector: Annotated[
        list[str] | None, typer.Option(help="Against this connector; may be repeated.")
    ] = None,
    last_failed: Annotated[
        bool, typer.Option("--last-failed", help="Only what did not pass in the last execution.")
    ] = False,
    concurrency: Annotated[int | None, typer.Option(min=1, max=1000, help="Runs at the same time.")] = None,
    agent_errors: Annotated[
        str, typer.Option(help="Count an agent's errors as: error (neither pass nor failure) or fail.")
    ] = "error",
    label: Annotated[list[str] | None, typer.Option(help="key=value kept with the execution.")] = None,
    record: Annotated[Path | None, typer.Option(help="Record what models and agents answer here.")] = None,
    replay: Annotated[Path | None, typer.Option(help="Answer from this recording; a miss fails.")] = None,
    cache: Annotated[bool, typer.Option("--cache", help="Keep model answers and use them again.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run an eval. Exit code: 0 all passed, 1 something failed, 3 nothing failed but something errored."""
    from ..base.problems import InvalidInput
    from ..execution.workspace import ModelOptions

    if agent_errors not in ("error", "fail"):
        raise InvalidInput(f'--agent-errors is "error" or "fail", not "{agent_errors}"')
    if record and replay:
        raise InvalidInput("--record and --replay exclude each other")
    labels = {key: value for key, _, value in (one.partition("=") for one in label or ())}
    part = Part(name, tuple(only or ()), tuple(connector or ()), repeat, last_failed, labels)
    url = server_url(config)
    if url is not None and (record or replay or cache or concurrency):
        raise InvalidInput("--record, --replay, --cache and --concurrency are the server's own with --server")

    async def work(project: Project, execution: Execution) -> int:
        import asyncio

        from ..execution.processor import stop_on_signals

        stop = asyncio.Event()
        with stop_on_signals(stop):
            done = await follow(project, execution, stop, concurrency, quiet=as_json)
        fails = agent_errors == "fail"
        return await report(project, done, agent_errors_fail=fails, as_json=as_json, stopped=stop.is_set())

    async def here() -> int:
        from ..execution.workspace import open_workspace

        options = ModelOptions(record=record, replay=replay, cache=cache)
        async with open_workspace(config_at_hand(config), options) as workspace:
            return await work(LocalProject(workspace), await _start(workspace, part))

    async def there(url: str) -> int:
        async with client_at(url) as client:
            project = RemoteProject(client)
            return await work(project, await _start_there(project, part))

    code = run_async(here() if url is None else there(url))
    if code:
        raise typer.Exit(code)


@dataclass(frozen=True, slots=True)
class Part:
    """What of an eval to run, by name."""

    name: str | None
    only: tuple[str, ...]
    connectors: tuple[str, ...]
    repeat: int | None
    last_failed: bool
    labels: dict[str, str]


async def _start(workspace: Workspace, part: Part) -> Execution:
    from dataclasses import replace

    from ..execution.request import only_failed, request_for, start_execution

    wanted = await find_eval(workspace.store, part.name)
    order = await request_for(
        workspace, wanted, only=part.only, connectors=part.connectors, repetitions=part.repeat
    )
    if part.last_failed:
        order = await only_failed(workspace.store, order)
    return await start_execution(workspace, replace(order, labels=dict(part.labels)))


async def _start_there(project: RemoteProject, part: Part) -> Execution:
    """Let the server start it, which knows things by their ids."""
    from ..execution.definitions import find, load_project_state

    wanted = await find_eval(project.records, part.name)
    project_state = await load_project_state(project.records) if part.only or part.connectors else None

    def ids(kind: DefinitionKind, names: tuple[str, ...]) -> list[str] | None:
        return (
            [project_state.entity(find(project_state, kind, one).key).id for one in names]
            if project_state and names
            else None
        )

    return await project.client.start(
        wanted.id,
        repetitions=part.repeat,
        labels=part.labels,
        scenarioIds=ids("scenario", part.only),
        connectorIds=ids("connector", part.connectors),
        lastFailed=part.last_failed,
        trigger="cli",
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


async def report(
    project: Project,
    execution: Execution,
    *,
    agent_errors_fail: bool,
    as_json: bool,
    stopped: bool = False,
) -> int:
    """Print what an execution came to and say the exit code."""
    from ..execution.processor import all_runs
    from ..reporting.statistics import group_of, summarize
    from ..storage.contract import Filters

    runs = [run async for run in all_runs(project.records, Filters(execution_id=execution.id))]
    runs.reverse()
    summary = summarize(map(group_of, runs), agent_errors_fail=agent_errors_fail)
    if as_json:
        listed = [run.model_dump(mode="json", by_alias=True, exclude_none=True) for run in runs]
        shown = execution.model_dump(mode="json", by_alias=True, exclude_none=True)
        print_json(
            {"execution": shown, "summary": summary.model_dump(mode="json", by_alias=True), "runs": listed}
        )
    else:
        from .run_display import print_runs, print_summary

        print_runs(runs)
        print_summary(execution, summary)
    missed = _misses(project)
    if missed:
        # A judge that missed may have been outvoted by a later turn; the recording is stale all the same.
        warn(f"The recording has no answer to {len(missed)} requests; record it anew. The first: {missed[0]}")
    if stopped and execution.status not in ("completed", "cancelled"):
        left = execution.counts.queued + execution.counts.running
        if isinstance(project, LocalProject):
            advice = "they stay queued. Go on with: evalstudio worker --until-done"
        else:
            advice = f"the server goes on. To stop it: evalstudio execution cancel {execution.id} --server …"
        warn(f"Stopped with {left} runs left; {advice}")
        return EXIT_INTERRUPTED
    return exit_code(summary.counts) or (EXIT_ERRORED if missed else 0)


def _misses(project: Project) -> Sequence[object]:
    """What a recording had no answer to."""
    cassette = project.workspace.cassette if isinstance(project, LocalProject) else None
    return cassette.misses if cassette is not None else []


def exit_code(counts: Counts) -> Literal[0, 1, 3]:
    if counts.failed:
        return EXIT_FAILED
    return EXIT_ERRORED if counts.passed < counts.total else 0


def print_hint(runs: list[RunSummary]) -> None:
    """What to look at next."""
    failed = next((run for run in runs if run.result and run.result.outcome != "pass"), None)
    if failed is not None:
        typer.echo(f"Look closer: evalstudio run show {failed.id}")


_LOOK_SECONDS = 0.3


async def follow(
    project: Project, execution: Execution, stop: asyncio.Event, concurrency: int | None, *, quiet: bool
) -> Execution:
    """Work on it here, or watch the server do so, until it is over or somebody wants to stop."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from ..execution.processor import work_off

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("starting", total=execution.counts.total)

        def show(now: Execution) -> None:
            counts = now.counts
            words = f"{counts.passed} passed, {counts.failed} failed, {counts.errored} errored"
            asked = " (stopping)" if stop.is_set() else ""
            bar.update(task, completed=counts.finished, description=words + asked)

        if isinstance(project, LocalProject):
            return await work_off(
                project.workspace, execution, stop=stop, concurrency=concurrency, follow=show
            )
        return await _watch(project.records, execution.id, stop, show)


async def _watch(records: Records, wanted: str, stop: asyncio.Event, show: Follow) -> Execution:
    while True:
        now = await records.execution(wanted)
        show(now)
        if stop.is_set() or now.status in ("completed", "cancelled"):
            return now
        try:
            await asyncio.wait_for(stop.wait(), _LOOK_SECONDS)
        except TimeoutError:
            continue
