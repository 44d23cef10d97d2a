"""``evalstudio execution``: presses of the button, and how each is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .output import print_json, print_table
from .project import ConfigOption, JsonOption, YesOption, confirm, project_at, run_async, with_server
from .runs import CursorOption, LimitOption, check_word, execution_id, more_hint, plain, when

if TYPE_CHECKING:
    from ..project.entities import Execution

app = typer.Typer(no_args_is_help=True, help="Executions: an eval, run once.")

_STATUSES = ("queued", "running", "completed", "cancelled")
ExecutionArgument = Annotated[
    str, typer.Argument(metavar="ID", help="An execution's id, or: last.", show_default=False)
]


@app.command("list")
@with_server
def list_executions(
    status: Annotated[str | None, typer.Option(help=f"One of: {', '.join(_STATUSES)}.")] = None,
    limit: LimitOption = 20,
    cursor: CursorOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List executions, the newest first."""
    check_word("--status", status, _STATUSES)

    async def work() -> None:
        from ..storage.contract import Filters

        async with project_at(config) as project:
            page = await project.records.executions(Filters(status=status), cursor=cursor, limit=limit)
        if as_json:
            print_json({"items": [plain(one) for one in page.items], "cursor": page.cursor})
        elif not page.items:
            typer.echo('No executions yet. Run an eval with "evalstudio eval run".')
        else:
            columns = ("Execution", "Started", "Status", "Eval", "Runs")
            print_table("Executions", columns, map(_row, page.items))
            more_hint(page.cursor)

    run_async(work())


def _row(execution: Execution) -> tuple[str, ...]:
    started = when(execution.started_at or execution.created_at)
    return execution.id, started, execution.status, execution.eval_name or "-", counts_text(execution)


def counts_text(execution: Execution) -> str:
    """The runs of an execution by where they stand, without what there is none of."""
    counts = execution.counts
    told = [
        f"{number} {word}"
        for word in ("passed", "failed", "errored", "cancelled", "running", "queued")
        if (number := getattr(counts, word))
    ]
    return ", ".join(told) or "none"


@app.command("show")
@with_server
def show_execution(
    wanted: ExecutionArgument, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Show what an execution came to."""

    async def work() -> None:
        from .eval_run import report

        async with project_at(config) as project:
            found = await project.records.execution(await execution_id(project.records, wanted))
            await report(project, found, agent_errors_fail=False, as_json=as_json)

    run_async(work())


@app.command("cancel")
@with_server
def cancel_execution(
    wanted: ExecutionArgument, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Cancel the runs of an execution that are waiting or running."""

    async def work() -> None:
        async with project_at(config) as project:
            found = await execution_id(project.records, wanted)
            count = await project.records.cancel(execution_id=found)
        print_json({"cancelled": count}) if as_json else typer.echo(f"{count} runs cancelled.")

    run_async(work())


@app.command("delete")
@with_server
def delete_execution(
    wanted: ExecutionArgument,
    yes: YesOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete an execution with all its runs."""

    async def work() -> None:
        async with project_at(config) as project:
            found = await project.records.execution(await execution_id(project.records, wanted))
            confirm(f"Delete execution {found.id} with {found.counts.total} runs?", yes=yes)
            count = await project.records.delete_execution(found.id)
        print_json({"deleted": count}) if as_json else typer.echo(f"Deleted, with {count} runs.")

    run_async(work())
