"""``evalstudio eval run``: run an eval, show it live, and say what it came to by the exit code."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.lazy_dataclass import dataclass
from ..base.signals import stop_on_signals
from ..base.text import counted
from .eval_start import Part, start
from .exit_codes import STOPPED, UNDECIDED, code_of
from .options import (
    AgentErrorsOption,
    AllOption,
    CacheOption,
    ConcurrencyOption,
    ConfigOption,
    ConnectorsOption,
    JsonOption,
    LabelsOption,
    LastFailedOption,
    MaxCostOption,
    MaxTimeOption,
    MaxTokensOption,
    OnlyOption,
    OnOption,
    RecordOption,
    RepeatOption,
    ReplayOption,
    ReportOption,
    RequireOption,
    ServerOption,
    UntilOption,
    read_agent_errors,
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
)
from .simple_tables import may_be_terminal
from .where import project_cluster

if TYPE_CHECKING:
    from ..execution.processor import Follow
    from ..execution.workspace import ModelOptions
    from ..project.config import ExecutionSettings
    from ..project.entities import Execution
    from ..reporting.reports.executions import ExecutionSource
    from ..reporting.requirements import ExecutionConclusion
    from ..storage.contract import Records
    from .report_files import ReportTarget


def eval_run(
    name: Annotated[
        list[str] | None,
        typer.Argument(help="Evals, by name or pattern; not needed where there is only one."),
    ] = None,
    file: FilesOption = None,
    every: AllOption = False,
    tag: TagOption = None,
    repeat: RepeatOption = None,
    only: OnlyOption = None,
    connector: ConnectorsOption = None,
    last_failed: LastFailedOption = False,
    concurrency: ConcurrencyOption = None,
    on: OnOption = None,
    agent_errors: AgentErrorsOption = None,
    label: LabelsOption = None,
    require: RequireOption = None,
    until: UntilOption = None,
    max_cost: MaxCostOption = None,
    max_tokens: MaxTokensOption = None,
    max_time: MaxTimeOption = None,
    report: ReportOption = None,
    record: RecordOption = None,
    replay: ReplayOption = None,
    cache: CacheOption = False,
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
    from ..execution.workspace import ModelOptions
    from ..project.requirements import read_budget, read_requirements
    from .report_files import in_github, report_targets

    models = ModelOptions(record=record, replay=replay, cache=cache)
    files = tuple(file or ())
    targets = [*report_targets(report or (), as_json=as_json), *in_github()]
    part = Part(
        name=None,
        only=tuple(only or ()),
        connectors=tuple(connector or ()),
        repeat=repeat,
        last_failed=last_failed,
        labels={key: value for key, _, value in (one.partition("=") for one in label or ())},
        requirements=tuple(read_requirements(require or ())),
        budget=read_budget(max_cost, max_tokens, max_time),
        until_decided=until is not None,
        agent_errors=read_agent_errors(agent_errors) or "error",
    )
    _check_together(models, until, server, concurrency, on)
    selection = Selection(
        tuple(name or ()), every, tuple(tag or ()), files, tuple(touched) if touched else None
    )
    if watch:
        from .watch import watch_files

        raise typer.Exit(watch_files(files, config, watch_also or (), kind="eval", server=server))
    running = EvalRunning(part, selection, concurrency, as_json, targets, on, models)
    if code := run_async(running.run(config, server)):
        raise typer.Exit(code)


def _check_together(
    models: ModelOptions, until: str | None, server: str | None, concurrency: int | None, on: str | None
) -> None:
    """Refuse options that do not go together."""
    from ..base.problems import InvalidInput

    if models.record and models.replay:
        raise InvalidInput("--record and --replay exclude each other")
    if until not in (None, "decided"):
        raise InvalidInput(f'--until is "decided", not "{until}"')
    if server is not None and (models.record or models.replay or models.cache or concurrency):
        raise InvalidInput("--record, --replay, --cache and --concurrency are the server's own with --server")
    if server is not None and on is not None:
        raise InvalidInput("--on is for a local project; a server's work is done by it and its workers")


@dataclass(frozen=True, slots=True)
class EvalRunning:
    """What a command asks for: which evals, what of each, and how it is told."""

    part: Part
    selection: Selection
    concurrency: int | None
    as_json: bool
    targets: Sequence[ReportTarget]
    on: str | None
    models: ModelOptions

    async def run(self, config: Path | None, server: str | None) -> int:
        from ..base.outages import riding_out
        from ..base.problems import InvalidInput

        stop, files = asyncio.Event(), self.selection.files
        with stop_on_signals(stop.set):
            async with opened(files, config, server, self.models) as (project, documents):
                # A database or a server that is away for a while does not end a long command.
                with riding_out():
                    chosen = await chosen_evals(project, self.selection, documents, self.part.only)
                    if self.targets and len(chosen) > 1:
                        raise InvalidInput("--report is for one eval; of several it would be overwritten")
                    parts = [replace(self.part, name=one, only=scenarios) for one, scenarios in chosen]
                    return await run_each(parts, partial(self._run_part, project, stop), as_json=self.as_json)

    async def _run_part(self, project: Project, stop: asyncio.Event, part: Part) -> Ran:
        done = await self._done(project, stop, part)
        if done is None:
            return STOPPED, None
        code = await conclude_and_print(
            project,
            done,
            as_json=self.as_json,
            stopped=stop.is_set(),
            reports=self.targets,
        )
        return code, done

    async def _done(self, project: Project, stop: asyncio.Event, part: Part) -> Execution | None:
        """The execution when it is over, or nothing if it was stopped before it began."""
        execution = await start(project, part, stop)
        if execution is None:
            return None
        return await follow(
            project,
            execution,
            stop,
            self.concurrency,
            quiet=self.as_json,
            cluster=project_cluster(project, self.on) if isinstance(project, LocalProject) else None,
            models=self.models,
        )


async def conclude_and_print(
    project: Project,
    execution: Execution,
    *,
    as_json: bool = False,
    stopped: bool = False,
    reports: Sequence[ReportTarget] = (),
) -> int:
    """Print what an execution came to, write its reports and say the exit code."""
    from .report_files import write_all

    conclusion, source = await _concluded(project, execution, detailed=bool(reports))
    await _print(project.records, execution, conclusion, as_json=as_json)
    if source is not None:
        await write_all(source, reports)
    cassette = project.workspace.cassette if isinstance(project, LocalProject) else None
    missed = cassette.misses if cassette is not None else []
    if missed:
        # A judge that missed may have been outvoted by a later turn; the recording is stale all the same.
        warn(
            f"The recording has no answer to {counted(len(missed), 'request')}; record it anew. "
            f"The first: {missed[0]}"
        )
    if stopped and not execution.is_over:
        _tell_stopped(project, execution)
        return STOPPED
    counts = conclusion.summary.counts
    if not execution.requirements and counts.unasserted == counts.total:
        warn("Not decided: nothing was asserted. Metrics only measure; add an evaluator that can fail.")
    return code_of(conclusion.standing) or (UNDECIDED if missed else 0)


async def _concluded(
    project: Project, execution: Execution, *, detailed: bool
) -> tuple[ExecutionConclusion, ExecutionSource | None]:
    """What it came to; a server says so itself, unless reports are to be written from its runs."""
    from ..execution.conclusion import conclude

    if isinstance(project, RemoteProject) and not detailed:
        return await project.client.conclusion(execution.id), None
    done = await conclude(project.records, execution, detailed=detailed)
    return done.result, done.source


async def _print(records: Records, execution: Execution, done: ExecutionConclusion, *, as_json: bool) -> None:
    from ..storage.contract import Filters, all_runs
    from .run_display import print_requirements, print_runs, print_summary

    runs = [run async for run in all_runs(records, Filters(execution_id=execution.id))]
    runs.reverse()
    if not as_json:
        print_runs(runs)
        print_summary(execution, done.summary)
        print_requirements(done.requirements, done.notes)
        return
    print_json(
        {
            "execution": plain(execution),
            "summary": done.summary.model_dump(mode="json", by_alias=True),
            "standing": done.standing,
            "requirements": [plain(one) for one in done.requirements],
            "notes": done.notes,
            "runs": [plain(run) for run in runs],
        }
    )


def _tell_stopped(project: Project, execution: Execution) -> None:
    left = execution.counts.queued + execution.counts.running
    if isinstance(project, LocalProject):
        advice = "they stay queued. Go on with: evalstudio worker --until-done"
    else:
        advice = f"the server goes on. To stop it: evalstudio execution cancel {execution.id} --server …"
    warn(f"Stopped with {counted(left, 'run')} left; {advice}")


_LOOK_SECONDS = 0.3


@contextmanager
def _progress(execution: Execution, stop: asyncio.Event, *, quiet: bool) -> Generator[Follow]:
    """A bar on the terminal; nothing where there is none."""
    console = open_console(stderr=True) if may_be_terminal(sys.stderr) and not quiet else None
    if console is None or not console.is_terminal:
        yield lambda now: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=execution.counts.total)

        def show(now: Execution) -> None:
            counts = now.counts
            words = f"{counts.passed} passed, {counts.failed} failed, {counts.errored} errored"
            words += f", {counts.unasserted} unasserted" if counts.unasserted else ""
            words += " (stopping)" if stop.is_set() else ""
            bar.update(task, completed=counts.finished, total=counts.total, description=words)

        yield show


async def follow(
    project: Project,
    execution: Execution,
    stop: asyncio.Event,
    concurrency: int | None,
    *,
    quiet: bool,
    cluster: ExecutionSettings | None = None,
    models: ModelOptions | None = None,
) -> Execution:
    """Work on it here or on a cluster, or watch the server do so, until it is over or is to stop."""
    from ..execution.processor import work_off

    with _progress(execution, stop, quiet=quiet) as show:
        if isinstance(project, LocalProject) and cluster is not None:
            from ..cluster.fleet import work_off_on_ray

            return await work_off_on_ray(
                project.workspace,
                project.config_path,
                cluster,
                execution,
                stop=stop,
                concurrency=concurrency,
                options=models,
                follow=show,
            )
        if isinstance(project, LocalProject):
            return await work_off(
                project.workspace,
                execution,
                stop=stop,
                concurrency=concurrency,
                follow=show,
            )
        return await watch_there(project.records, execution.id, stop, show)


async def watch_there(
    records: Records, execution_id: str, stop: asyncio.Event, show: Follow | None = None
) -> Execution:
    """Watch a server until an execution is over, or somebody wants to stop."""
    from ..base.concurrency import set_within

    while True:
        now = await records.execution(execution_id)
        if show is not None:
            show(now)
        is_over = now.is_over and not now.is_unfinished
        if stop.is_set() or is_over:
            return now
        await set_within(stop, _LOOK_SECONDS)
