"""``evalstudio review``: hold recorded conversations against an eval, a scenario or a plan."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.signals import stop_on_signals
from .exit_codes import STOPPED, UNDECIDED
from .options import (
    ConcurrencyOption,
    ConfigOption,
    JsonOption,
    OnOption,
    ReportOption,
    RequireOption,
    ServerOption,
)
from .output import fail, open_console, say, warn
from .project import Project, project_at, run_async
from .reviewers import Measure, Reviewer, opened_reviewer

if TYPE_CHECKING:
    from ..execution.reviews import Review
    from ..project.entities import Execution
    from ..recordings.reading import Read

_MOST_SHOWN = 10


def review(
    files: Annotated[
        list[Path],
        typer.Argument(help="Files or folders of recorded conversations, in any known format."),
    ],
    of_eval: Annotated[
        str | None, typer.Option("--eval", metavar="NAME", help="Judge by the scenarios of this eval.")
    ] = None,
    scenario: Annotated[
        str | None, typer.Option("--scenario", metavar="NAME", help="Judge by this scenario.")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="Judge by this scoring plan.")
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--fields",
            metavar="TARGET=PATH",
            help="Where a field is in unknown formats: messages=log.turns; may be repeated.",
        ),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="The format of the files; else it is recognised.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="EXECUTION", help="Go on with a review that was stopped.")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="What cannot be read does not change the exit code.")
    ] = False,
    concurrency: ConcurrencyOption = None,
    on: OnOption = None,
    label: Annotated[list[str] | None, typer.Option(help="key=value kept with the execution.")] = None,
    require: RequireOption = None,
    report: ReportOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    server: ServerOption = None,
) -> None:
    """Judge recorded conversations as if they had been held here. Exit codes are those of eval run.

    What cannot be read is listed and makes the exit code 3, unless --skip-bad is given.
    """
    from ..project.requirements import read_requirements
    from ..recordings.reading import read_conversations
    from .report_files import in_github, report_targets

    measure = Measure(of_eval, scenario, plan)
    measure.check()
    requirements = read_requirements(require or ())
    labels = {key: value for key, _, value in (one.partition("=") for one in label or ())}
    targets = [*report_targets(report or (), as_json=as_json), *in_github()]
    conversations = read_conversations(files, fields=_fields(fields or ()), format=form)

    if server is not None and concurrency is not None:
        raise fail("--concurrency is the server's own with --server")
    if server is not None and on is not None:
        raise fail("--on is for a local project; a server's work is done by it and its workers")

    async def work() -> int:
        from ..base.outages import riding_out
        from .eval_run import conclude_and_print

        stop = asyncio.Event()
        with stop_on_signals(stop.set):
            async with project_at(config, server) as project:
                with riding_out():
                    reviewer = await opened_reviewer(project, measure, labels, requirements, concurrency, on)
                    execution = await reviewer.execution(resume)
                    done = await _follow(reviewer, execution, conversations, stop, quiet=as_json)
                    if not done.execution.counts.total:
                        return await _nothing(project, done)
                    code = await conclude_and_print(project, done.execution, as_json=as_json, reports=targets)
                    return _code(done, code, skip_bad=skip_bad)

    if code := run_async(work()):
        raise typer.Exit(code)


def _fields(options: Sequence[str]) -> dict[str, str]:
    for one in options:
        if "=" not in one:
            raise fail(f'--fields takes TARGET=PATH, such as messages=log.turns, not "{one}"')
    return {target.strip(): path.strip() for target, _, path in (one.partition("=") for one in options)}


async def _follow(
    reviewer: Reviewer,
    execution: Execution,
    conversations: Iterator[Read],
    stop: asyncio.Event,
    *,
    quiet: bool,
) -> Review:
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = open_console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("reading")

        def show(now: Review) -> None:
            counts = now.execution.counts
            words = f"{now.read:,} read: {counts.passed:,} passed, {counts.failed:,} failed, "
            words += f"{counts.errored:,} errored" + (" (stopping)" if stop.is_set() else "")
            bar.update(task, description=words)

        return await reviewer.review(execution, conversations, stop, show)


async def _nothing(project: Project, done: Review) -> int:
    """Nothing was reviewed: the execution, which has no run, is not kept."""
    await project.records.delete_execution(done.execution.id)
    _tell_unreadable(done)
    if done.stopped:
        warn("Stopped. Nothing was reviewed.")
        return STOPPED
    raise fail(f"not one of {done.read:,} conversations could be reviewed")


def _code(done: Review, code: int, *, skip_bad: bool) -> int:
    if done.known:
        say(f"{done.known:,} conversations had been reviewed before")
    _tell_unreadable(done)
    if done.stopped:
        warn(
            f"Stopped; what was reviewed is kept. Go on with the same command and "
            f"--resume {done.execution.id}"
        )
        return STOPPED
    return code or (UNDECIDED if done.bad and not skip_bad else 0)


def _tell_unreadable(done: Review) -> None:
    """What could not be read, by file, line and reason."""
    if not done.bad:
        return
    noun = "conversation" if done.bad == 1 else "conversations"
    warn(f"{done.bad:,} {noun} could not be reviewed:")
    for one in done.unreadable[:_MOST_SHOWN]:
        warn(f"  {one}")
    if done.bad > _MOST_SHOWN:
        warn(f"  and {done.bad - _MOST_SHOWN:,} more")
