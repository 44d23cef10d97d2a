"""``evalstudio eval run``: run an eval, show it live, and say what it came to by the exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..base.signals import stop_on_signals
from .exit_codes import STOPPED, UNDECIDED, code_of
from .options import (
    ConcurrencyOption,
    ConfigOption,
    JsonOption,
    ReportOption,
    RequireOption,
    ServerOption,
)
from .output import open_console, plain, print_json, warn
from .project import LocalProject, Project, RemoteProject, run_async
from .run_files import (
    FilesOption,
    Ran,
    Selection,
    TagOption,
    TouchedOption,
    WatchAlsoOption,
    WatchOption,
    chosen_evals,
    opened,
    run_each,
    warn_of_changed_files,
)

if TYPE_CHECKING:
    from ..execution.conclusion import Conclusion
    from ..execution.processor import Follow
    from ..execution.request import ExecutionRequest
    from ..project.documents import DefinitionKind
    from ..project.entities import Execution, StoredEval
    from ..project.requirements import Budget, Requirement
    from ..storage.contract import Records
    from .report_files import ReportTarget

# How long a stopped command waits for the answer that says whether the execution was started.
_LAST_ANSWER_SECONDS = 15.0


def eval_run(
    name: Annotated[
        list[str] | None,
        typer.Argument(help="Evals, by name or pattern; not needed where there is only one."),
    ] = None,
    file: FilesOption = None,
    every: Annotated[bool, typer.Option("--all", help="Every eval.")] = False,
    tag: TagOption = None,
    repeat: Annotated[int | None, typer.Option(min=1, help="Repetitions, instead of the eval's own.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only this scenario; may be repeated.")] = None,
    connector: Annotated[
        list[str] | None, typer.Option(help="Against this connector; may be repeated.")
    ] = None,
    last_failed: Annotated[
        bool, typer.Option("--last-failed", help="Only what did not pass in the last execution.")
    ] = False,
    concurrency: ConcurrencyOption = None,
    agent_errors: Annotated[
        str, typer.Option(help="Count an agent's errors as: error (neither pass nor failure) or fail.")
    ] = "error",
    label: Annotated[list[str] | None, typer.Option(help="key=value kept with the execution.")] = None,
    require: RequireOption = None,
    until: Annotated[
        str | None,
        typer.Option(help='With "decided": repeat only what is still open, up to --repeat times.'),
    ] = None,
    max_cost: Annotated[float | None, typer.Option(help="End it when this many US dollars are used.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="End it when this many tokens are used.")] = None,
    max_time: Annotated[float | None, typer.Option(help="End it after so many seconds.")] = None,
    report: ReportOption = None,
    record: Annotated[Path | None, typer.Option(help="Record what models and agents answer here.")] = None,
    replay: Annotated[Path | None, typer.Option(help="Answer from this recording; a miss fails.")] = None,
    cache: Annotated[bool, typer.Option("--cache", help="Keep model answers and use them again.")] = False,
    watch: WatchOption = False,
    watch_also: WatchAlsoOption = None,
    touched: TouchedOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    server: ServerOption = None,
) -> None:
    """Run evals. Exit code: 0 met, 1 missed, 2 wrong input, 3 not decided (errors, nothing asserted).

    Of several evals the exit code is that of the worst: 1 before 3 before 0.
    """
    from ..base.problems import InvalidInput
    from ..execution.workspace import ModelOptions
    from ..project.requirements import read_budget, read_requirements
    from .report_files import in_github, report_targets

    if agent_errors not in ("error", "fail"):
        raise InvalidInput(f'--agent-errors is "error" or "fail", not "{agent_errors}"')
    if record and replay:
        raise InvalidInput("--record and --replay exclude each other")
    labels = {key: value for key, _, value in (one.partition("=") for one in label or ())}
    budget = read_budget(max_cost, max_tokens, max_time)
    targets = [*report_targets(report or (), as_json=as_json), *in_github()]
    part = Part(
        None,
        tuple(only or ()),
        tuple(connector or ()),
        repeat,
        last_failed,
        labels,
        tuple(read_requirements(require or ())),
        budget,
    )
    if until not in (None, "decided"):
        raise InvalidInput(f'--until is "decided", not "{until}"')
    if until and (server is not None or last_failed):
        raise InvalidInput("--until decided is for a local project, and not for --last-failed")
    if server is not None and (part.requirements or budget):
        raise InvalidInput("--require and budgets are the eval's own with --server; keep them in the eval")
    if server is not None and (record or replay or cache or concurrency):
        raise InvalidInput("--record, --replay, --cache and --concurrency are the server's own with --server")
    names, files = tuple(name or ()), tuple(file or ())
    selection = Selection(names, every, tuple(tag or ()), files, tuple(touched) if touched else None)
    if watch:
        from .watch import watch_files

        raise typer.Exit(watch_files(files, config, watch_also or (), kind="eval", server=server))

    async def work() -> int:
        from ..base.outages import riding_out

        options, stop = ModelOptions(record=record, replay=replay, cache=cache), asyncio.Event()

        async def run_part(part: Part) -> Ran:
            if until is not None and isinstance(project, LocalProject):
                done = await _until_decided(
                    project,
                    part,
                    stop,
                    concurrency,
                    agent_errors_fail=agent_errors == "fail",
                    quiet=as_json,
                )
            else:
                execution = await _start(project, part, stop)
                if execution is None:
                    return STOPPED, None
                done = await follow(project, execution, stop, concurrency, quiet=as_json)
            code = await conclude_and_print(
                project,
                done,
                agent_errors_fail=agent_errors == "fail",
                as_json=as_json,
                stopped=stop.is_set(),
                reports=targets,
            )
            return code, done

        with stop_on_signals(stop.set):
            async with opened(files, config, server, options) as (project, documents):
                # A database or a server that is away for a while does not end a long command.
                with riding_out():
                    chosen = await chosen_evals(project, selection, documents, part.only)
                    if targets and len(chosen) > 1:
                        raise InvalidInput("--report is for one eval; of several it would be overwritten")
                    parts = [replace(part, name=one, only=scenarios) for one, scenarios in chosen]
                    return await run_each(parts, run_part, as_json=as_json)

    if code := run_async(work()):
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
    requirements: tuple[Requirement, ...] = ()
    budget: Budget | None = None


async def _start(project: Project, part: Part, stop: asyncio.Event) -> Execution | None:
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


async def _until_decided(
    project: LocalProject,
    part: Part,
    stop: asyncio.Event,
    concurrency: int | None,
    *,
    agent_errors_fail: bool,
    quiet: bool,
) -> Execution:
    from ..execution.until_decided import run_until_decided

    request = await _request_here(project, part)
    work = partial(follow, project, stop=stop, concurrency=concurrency, quiet=quiet)
    return await run_until_decided(
        project.workspace, request, work, stop, agent_errors_fail=agent_errors_fail
    )


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


async def conclude_and_print(
    project: Project,
    execution: Execution,
    *,
    agent_errors_fail: bool = False,
    as_json: bool = False,
    stopped: bool = False,
    reports: Sequence[ReportTarget] = (),
) -> int:
    """Print what an execution came to, write its reports and say the exit code."""
    from ..execution.conclusion import conclude
    from .report_files import write_all

    done = await conclude(
        project.records, execution, agent_errors_fail=agent_errors_fail, detailed=bool(reports)
    )
    await _print(project.records, execution, done, as_json=as_json)
    await write_all(done.source, reports)
    cassette = project.workspace.cassette if isinstance(project, LocalProject) else None
    missed = cassette.misses if cassette is not None else []
    if missed:
        # A judge that missed may have been outvoted by a later turn; the recording is stale all the same.
        warn(f"The recording has no answer to {len(missed)} requests; record it anew. The first: {missed[0]}")
    if stopped and execution.status not in ("completed", "cancelled"):
        _tell_stopped(project, execution)
        return STOPPED
    counts = done.summary.counts
    if not execution.requirements and counts.unasserted == counts.total:
        warn("Not decided: nothing was asserted. Metrics only measure; add an evaluator that can fail.")
    return code_of(done.standing) or (UNDECIDED if missed else 0)


async def _print(records: Records, execution: Execution, done: Conclusion, *, as_json: bool) -> None:
    from ..execution.processor import all_runs
    from ..storage.contract import Filters
    from .run_display import print_requirements, print_runs, print_summary

    runs = [run async for run in all_runs(records, Filters(execution_id=execution.id))]
    runs.reverse()
    if not as_json:
        print_runs(runs)
        print_summary(execution, done.summary)
        print_requirements(done.requirements, done.source.head.notes)
        return
    print_json(
        {
            "execution": plain(execution),
            "summary": done.summary.model_dump(mode="json", by_alias=True),
            "standing": done.standing,
            "requirements": [plain(one) for one in done.requirements],
            "notes": done.source.head.notes,
            "runs": [plain(run) for run in runs],
        }
    )


def _tell_stopped(project: Project, execution: Execution) -> None:
    left = execution.counts.queued + execution.counts.running
    if isinstance(project, LocalProject):
        advice = "they stay queued. Go on with: evalstudio worker --until-done"
    else:
        advice = f"the server goes on. To stop it: evalstudio execution cancel {execution.id} --server …"
    warn(f"Stopped with {left} runs left; {advice}")


_LOOK_SECONDS = 0.3


async def follow(
    project: Project, execution: Execution, stop: asyncio.Event, concurrency: int | None, *, quiet: bool
) -> Execution:
    """Work on it here, or watch the server do so, until it is over or somebody wants to stop."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from ..execution.processor import work_off

    console = open_console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("starting", total=execution.counts.total)

        def show(now: Execution) -> None:
            counts = now.counts
            words = f"{counts.passed} passed, {counts.failed} failed, {counts.errored} errored"
            words += f", {counts.unasserted} unasserted" if counts.unasserted else ""
            words += " (stopping)" if stop.is_set() else ""
            bar.update(task, completed=counts.finished, description=words)

        if isinstance(project, LocalProject):
            return await work_off(
                project.workspace, execution, stop=stop, concurrency=concurrency, follow=show
            )
        return await _watch(project.records, execution.id, stop, show)


async def _watch(records: Records, execution_id: str, stop: asyncio.Event, show: Follow) -> Execution:
    from ..base.concurrency import set_within

    while True:
        now = await records.execution(execution_id)
        show(now)
        if stop.is_set() or now.status in ("completed", "cancelled"):
            return now
        await set_within(stop, _LOOK_SECONDS)
