"""``evalstudio run``: runs, their transcripts, and trying errored ones again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .output import fail, print_json, print_table, warn
from .project import ConfigOption, JsonOption, YesOption, confirm, project_at, run_async, with_server

if TYPE_CHECKING:
    from ..project.entities import Execution, RunSummary
    from ..storage.contract import Records
    from .project import Project

app = typer.Typer(no_args_is_help=True, help="Runs: what was said and how it was judged.")

_STATUSES = ("queued", "running", "completed", "error", "cancelled")
_OUTCOMES = ("pass", "fail", "error")

RunArgument = Annotated[
    str, typer.Argument(metavar="ID", help="A run's id, or: last, last-failed.", show_default=False)
]
RunsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="ID…", help="Ids of runs, or: last, last-failed.")
]
ExecutionOption = Annotated[
    str | None, typer.Option("--execution", "-e", metavar="ID", help="An execution's id, or: last.")
]
LimitOption = Annotated[int, typer.Option(min=1, max=1000, help="The most to list.")]
CursorOption = Annotated[str | None, typer.Option(help="Where the list before this one ended.")]


@app.command("list")
@with_server
def list_runs(
    execution: ExecutionOption = None,
    status: Annotated[str | None, typer.Option(help=f"One of: {', '.join(_STATUSES)}.")] = None,
    outcome: Annotated[str | None, typer.Option(help=f"One of: {', '.join(_OUTCOMES)}.")] = None,
    limit: LimitOption = 20,
    cursor: CursorOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List runs, the newest first."""
    check_word("--status", status, _STATUSES)
    check_word("--outcome", outcome, _OUTCOMES)

    async def work() -> None:
        from typing import cast

        from ..storage.contract import Filters

        async with project_at(config) as project:
            wanted = await execution_id(project.records, execution) if execution else None
            filters = Filters(status=status, outcome=cast(Any, outcome), execution_id=wanted)
            page = await project.records.runs(filters, cursor=cursor, limit=limit)
        if as_json:
            print_json({"items": [plain(run) for run in page.items], "cursor": page.cursor})
        elif not page.items:
            typer.echo("No runs.")
        else:
            print_table("Runs", ("Run", "Started", "Result", "Latency", "Scenario"), map(_row, page.items))
            more_hint(page.cursor)

    run_async(work())


def _row(run: RunSummary) -> tuple[str, ...]:
    from ..reporting.statistics import subject_of
    from .run_display import milliseconds

    latency = "-" if run.latency_ms is None else milliseconds(run.latency_ms)
    repeated = f" · repetition {run.repetition}" if run.repetition > 1 else ""
    return run.id, _short(run.started_at), result_of(run), latency, subject_of(run).label + repeated


def result_of(run: RunSummary) -> str:
    """How a run stands, in a word."""
    return run.result.outcome if run.result else run.status


def when(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else "-"


def _short(moment: datetime | None) -> str:
    """The time of today, else the day: one word, so that a row stays a line."""
    if moment is None:
        return "-"
    return f"{moment:%H:%M:%S}" if moment.date() == datetime.now(UTC).date() else f"{moment:%Y-%m-%d}"


def plain(entity: Any) -> dict[str, Any]:
    return entity.model_dump(mode="json", by_alias=True, exclude_none=True)


def more_hint(cursor: str | None) -> None:
    if cursor is not None:
        warn(f"There are more: add --cursor {cursor}")


def check_word(option: str, given: str | None, known: tuple[str, ...]) -> None:
    from ..base.problems import suggestion

    if given is not None and given not in known:
        raise fail(f'{option} "{given}" is not known; {suggestion(given, known, "choose one of")}')


@app.command("show")
@with_server
def show_run(
    wanted: RunArgument,
    attempt: Annotated[int | None, typer.Option(min=1, help="An earlier attempt.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a run: the transcript with the verdicts under each turn."""

    async def work() -> None:
        async with project_at(config) as project:
            run = await project.records.run(await run_id(project.records, wanted), attempt=attempt)
        if as_json:
            print_json(plain(run))
        else:
            from .run_display import print_run

            print_run(run)

    run_async(work())


@app.command("retry")
@with_server
def retry_runs(
    wanted: RunsArgument = None,
    execution: ExecutionOption = None,
    queue_only: Annotated[
        bool, typer.Option("--queue-only", help="Leave them to workers instead of running them here.")
    ] = False,
    concurrency: Annotated[int | None, typer.Option(min=1, max=1000, help="Runs at the same time.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run errored runs again. Others are left alone: passing and failing are results."""

    async def work() -> int:
        async with project_at(config) as project:
            chosen = await _chosen(project.records, wanted, execution)
            count = await project.records.retry(**chosen)
            if not count:
                raise fail("nothing to retry: only runs that ended in an error are run again")
            if queue_only:
                print_json({"queued": count}) if as_json else typer.echo(f"{count} queued.")
                return 0
            return await _finish(project, chosen, concurrency, as_json)

    if code := run_async(work()):
        raise typer.Exit(code)


async def _chosen(records: Records, wanted: list[str] | None, execution: str | None) -> dict[str, Any]:
    """Runs by id, or all of an execution, in the words of the store."""
    if bool(wanted) == bool(execution):
        raise fail("name runs, or an execution with --execution")
    if execution:
        return {"execution_id": await execution_id(records, execution)}
    ids = [await run_id(records, one) for one in wanted or ()]
    for one in ids:
        await records.run(one)
    return {"run_ids": ids}


async def _finish(project: Project, chosen: dict[str, Any], concurrency: int | None, as_json: bool) -> int:
    """See what was queued again through to its end, and say what its executions came to."""
    import asyncio

    from ..execution.processor import stop_on_signals
    from .eval_run import follow, report

    stop, codes = asyncio.Event(), list[int]()
    with stop_on_signals(stop):
        for execution in await _executions(project.records, chosen):
            done = await follow(project, execution, stop, concurrency, quiet=as_json)
            codes.append(
                await report(project, done, agent_errors_fail=False, as_json=as_json, stopped=stop.is_set())
            )
    return next((code for code in codes if code), 0)


async def _executions(records: Records, chosen: dict[str, Any]) -> list[Execution]:
    if "execution_id" in chosen:
        return [await records.execution(chosen["execution_id"])]
    runs = [await records.run(one) for one in chosen["run_ids"]]
    ids = dict.fromkeys(run.execution_id for run in runs)
    return [await records.execution(one) for one in ids]


@app.command("cancel")
@with_server
def cancel_runs(
    wanted: RunsArgument = None,
    execution: ExecutionOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel runs that are waiting or running."""

    async def work() -> None:
        async with project_at(config) as project:
            count = await project.records.cancel(**await _chosen(project.records, wanted, execution))
        print_json({"cancelled": count}) if as_json else typer.echo(f"{count} cancelled.")

    run_async(work())


@app.command("delete")
@with_server
def delete_runs(
    wanted: Annotated[list[str], typer.Argument(metavar="ID…", help="Ids of runs, or: last, last-failed.")],
    yes: YesOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete runs with all that was said in them."""

    async def work() -> None:
        async with project_at(config) as project:
            ids = (await _chosen(project.records, wanted, None))["run_ids"]
            confirm(f"Delete {len(ids)} run{'s' if len(ids) > 1 else ''}?", yes=yes)
            count = await project.records.delete_runs(ids)
        print_json({"deleted": count}) if as_json else typer.echo(f"{count} deleted.")

    run_async(work())


async def run_id(records: Records, wanted: str) -> str:
    """An id, or what ``last`` and ``last-failed`` stand for."""
    from ..base.problems import InvalidInput
    from ..storage.contract import Filters

    if wanted not in ("last", "last-failed"):
        return wanted
    chosen = [Filters()] if wanted == "last" else [Filters(outcome="fail"), Filters(outcome="error")]
    found = [run for one in chosen for run in (await records.runs(one, limit=1)).items]
    if not found:
        raise InvalidInput("there are no runs yet" if wanted == "last" else "no run has failed or errored")
    return max(run.id for run in found)


async def execution_id(records: Records, wanted: str) -> str:
    """An id, or what ``last`` stands for."""
    from ..base.problems import InvalidInput

    if wanted != "last":
        return (await records.execution(wanted)).id
    page = await records.executions(limit=1)
    if not page.items:
        raise InvalidInput("there are no executions yet")
    return page.items[0].id
