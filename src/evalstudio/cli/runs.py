"""``evalstudio run``: runs, their transcripts, and trying errored ones again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..base.text import milliseconds
from .options import ConcurrencyOption, JsonOption, YesOption
from .output import fail, plain, print_json, print_result, print_table, say, warn
from .project import Project, confirm, on_project
from .scenario_run import run_scenarios

if TYPE_CHECKING:
    from ..project.entities import Execution, RunSummary
    from ..storage.contract import Page, Records

app = typer.Typer(no_args_is_help=True, invoke_without_command=True, callback=run_scenarios)

_STATUSES = ("queued", "running", "completed", "error", "cancelled")
_OUTCOMES = ("pass", "fail", "error", "unasserted")

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
@on_project
async def list_runs(
    project: Project,
    execution: ExecutionOption = None,
    status: Annotated[str | None, typer.Option(help=f"One of: {', '.join(_STATUSES)}.")] = None,
    outcome: Annotated[str | None, typer.Option(help=f"One of: {', '.join(_OUTCOMES)}.")] = None,
    limit: LimitOption = 20,
    cursor: CursorOption = None,
    as_json: JsonOption = False,
) -> None:
    """List runs, the newest first."""
    from ..storage.contract import Filters

    check_word("--status", status, _STATUSES)
    check_word("--outcome", outcome, _OUTCOMES)
    within = await execution_id(project.records, execution) if execution else None
    filters = Filters(status=status, outcome=cast(Any, outcome), execution_id=within)
    page = await project.records.runs(filters, cursor=cursor, limit=limit)
    columns = ("Run", "Started", "Result", "Latency", "Scenario")
    print_page(page, "Runs", columns, _row, "No runs.", as_json)


def print_page(
    page: Page[Any],
    title: str,
    columns: Sequence[str],
    row: Callable[[Any], Sequence[str]],
    nothing: str,
    as_json: bool,
) -> None:
    """One page of a list, and how to get the next."""
    if as_json:
        print_json({"items": [plain(item) for item in page.items], "cursor": page.cursor})
    elif not page.items:
        say(nothing)
    else:
        print_table(title, columns, map(row, page.items))
        if page.cursor is not None:
            warn(f"There are more: add --cursor {page.cursor}")


def _row(run: RunSummary) -> tuple[str, ...]:
    from ..project.entities import Subject

    repeated = f" · repetition {run.repetition}" if run.repetition > 1 else ""
    return (
        run.id,
        _short(run.started_at),
        run.standing,
        milliseconds(run.latency_ms),
        Subject.of(run).label + repeated,
    )


def when(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else "-"


def _short(moment: datetime | None) -> str:
    """The time of today, else the day: one word, so that a row stays a line."""
    if moment is None:
        return "-"
    return f"{moment:%H:%M:%S}" if moment.date() == datetime.now(UTC).date() else f"{moment:%Y-%m-%d}"


def check_word(option: str, word: str | None, known: tuple[str, ...]) -> None:
    from ..base.problems import suggestion

    if word is not None and word not in known:
        raise fail(f'{option} "{word}" is not known; {suggestion(word, known, "choose one of")}')


@app.command("show")
@on_project
async def show_run(
    project: Project,
    target: RunArgument,
    attempt: Annotated[int | None, typer.Option(min=1, help="An earlier attempt.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Tracebacks and the run's log too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a run: the transcript with the verdicts under each turn."""
    from .run_display import print_run

    run = await project.records.run(await run_id(project.records, target), attempt=attempt)
    print_json(plain(run)) if as_json else print_run(run, debug=debug)


@app.command("retry")
@on_project
async def retry_runs(
    project: Project,
    targets: RunsArgument = None,
    execution: ExecutionOption = None,
    queue_only: Annotated[
        bool, typer.Option("--queue-only", help="Leave them to workers instead of running them here.")
    ] = False,
    concurrency: ConcurrencyOption = None,
    as_json: JsonOption = False,
) -> int:
    """Run errored runs again. Others are left alone: passing and failing are results."""
    chosen = await _chosen(project.records, targets, execution)
    count = await project.records.retry(**chosen)
    if not count:
        raise fail("nothing to retry: only runs that ended in an error are run again")
    if queue_only:
        print_result(as_json, {"queued": count}, f"{count} queued.")
        return 0
    return await _finish(project, chosen, concurrency, as_json)


async def _chosen(records: Records, targets: list[str] | None, execution: str | None) -> dict[str, Any]:
    """Runs by id, or all of an execution, as keyword arguments of the store."""
    if bool(targets) == bool(execution):
        raise fail("name runs, or an execution with --execution")
    if execution:
        return {"execution_id": await execution_id(records, execution)}
    ids = [await run_id(records, target) for target in targets or ()]
    for one in ids:
        await records.run(one)
    return {"run_ids": ids}


async def _finish(project: Project, chosen: dict[str, Any], concurrency: int | None, as_json: bool) -> int:
    """See what was queued again through to its end, and say what its executions came to."""
    import asyncio

    from ..base.outages import riding_out
    from ..base.signals import stop_on_signals
    from .eval_run import conclude_and_print, follow

    stop, codes = asyncio.Event(), list[int]()
    with stop_on_signals(stop.set), riding_out():
        for execution in await _executions(project.records, chosen):
            done = await follow(project, execution, stop, concurrency, quiet=as_json)
            codes.append(await conclude_and_print(project, done, as_json=as_json, stopped=stop.is_set()))
    return next((code for code in codes if code), 0)


async def _executions(records: Records, chosen: dict[str, Any]) -> list[Execution]:
    if "execution_id" in chosen:
        return [await records.execution(chosen["execution_id"])]
    runs = [await records.run(one) for one in chosen["run_ids"]]
    ids = dict.fromkeys(run.execution_id for run in runs)
    return [await records.execution(one) for one in ids]


@app.command("cancel")
@on_project
async def cancel_runs(
    project: Project,
    targets: RunsArgument = None,
    execution: ExecutionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel runs that are waiting or running."""
    count = await project.records.cancel(**await _chosen(project.records, targets, execution))
    print_result(as_json, {"cancelled": count}, f"{count} cancelled.")


@app.command("delete")
@on_project
async def delete_runs(
    project: Project,
    targets: Annotated[list[str], typer.Argument(metavar="ID…", help="Ids of runs, or: last, last-failed.")],
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete runs with all that was said in them."""
    ids = (await _chosen(project.records, targets, None))["run_ids"]
    confirm(f"Delete {len(ids)} run{'s' if len(ids) > 1 else ''}?", yes=yes)
    count = await project.records.delete_runs(ids)
    print_result(as_json, {"deleted": count}, f"{count} deleted.")


async def run_id(records: Records, target: str) -> str:
    """An id, or what ``last`` and ``last-failed`` stand for."""
    from ..base.problems import InvalidInput
    from ..storage.contract import Filters

    if target not in ("last", "last-failed"):
        return target
    chosen = [Filters()] if target == "last" else [Filters(outcome="fail"), Filters(outcome="error")]
    runs = [run for one in chosen for run in (await records.runs(one, limit=1)).items]
    if not runs:
        raise InvalidInput("there are no runs yet" if target == "last" else "no run has failed or errored")
    return max(run.id for run in runs)


async def execution_id(records: Records, target: str) -> str:
    """An id, or what ``last`` stands for."""
    from ..base.problems import InvalidInput

    if target != "last":
        return (await records.execution(target)).id
    page = await records.executions(limit=1)
    if not page.items:
        raise InvalidInput("there are no executions yet")
    return page.items[0].id
