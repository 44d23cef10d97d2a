"""``evalstudio execution``: each time an eval was run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..base.text import counted
from .options import JsonOption, YesOption
from .output import print_result
from .project import Project, confirm, on_project
from .runs import CursorOption, LimitOption, check_word, execution_id, print_page, when

if TYPE_CHECKING:
    from ..project.entities import Execution

app = typer.Typer(no_args_is_help=True, help="Executions: an eval, run once.")

_STATUSES = ("queued", "running", "completed", "cancelled")
ExecutionArgument = Annotated[
    str, typer.Argument(metavar="ID", help="An execution's id, or: last.", show_default=False)
]


@app.command("list")
@on_project
async def list_executions(
    project: Project,
    status: Annotated[str | None, typer.Option(help=f"One of: {', '.join(_STATUSES)}.")] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="With this label: key=value, or key; may be repeated.")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Only live ones that are not partial or replayed.")
    ] = False,
    limit: LimitOption = 20,
    cursor: CursorOption = None,
    as_json: JsonOption = False,
) -> None:
    """List executions, the newest first."""
    from ..storage.contract import Filters

    check_word("--status", status, _STATUSES)
    filters = Filters(status=status, labels=label or (), whole=whole)
    page = await project.records.executions(filters, cursor=cursor, limit=limit)
    columns = ("Execution", "Started", "Status", "Eval", "Runs", "Labels")
    # A column that is empty for all of them is left out.
    number = len(columns) if any(execution.labels for execution in page.items) else len(columns) - 1
    nothing = "No such executions." if label or whole or status else _NOTHING
    print_page(page, "Executions", columns[:number], lambda one: _row(one)[:number], nothing, as_json)


_NOTHING = 'No executions yet. Run an eval with "evalstudio eval run".'


def _row(execution: Execution) -> tuple[str, ...]:
    from .run_display import labels_text

    started = when(execution.started_at or execution.created_at)
    name = execution.eval_name or "-"
    return execution.id, started, status_text(execution), name, counts_text(execution), labels_text(execution)


def status_text(execution: Execution) -> str:
    """How it stands, and why it is not the whole eval, if so."""
    marks = [f"partial: {execution.partial}" if execution.partial else "", "replayed" * execution.replayed]
    marks.insert(0, "" if execution.source == "live" else execution.source)
    listed = ", ".join(mark for mark in marks if mark)
    return f"{execution.status} ({listed})" if listed else execution.status


def counts_text(execution: Execution) -> str:
    """The runs of an execution by where they stand, without what there is none of."""
    counts = execution.counts
    words = ("passed", "failed", "errored", "unasserted", "cancelled", "running", "queued")
    return ", ".join(f"{number} {word}" for word in words if (number := getattr(counts, word))) or "none"


@app.command("show")
@on_project
async def show_execution(project: Project, target: ExecutionArgument, as_json: JsonOption = False) -> None:
    """Show what an execution came to."""
    from .eval_run import conclude_and_print

    execution = await project.records.execution(await execution_id(project.records, target))
    await conclude_and_print(project, execution, as_json=as_json)


@app.command("cancel")
@on_project
async def cancel_execution(project: Project, target: ExecutionArgument, as_json: JsonOption = False) -> None:
    """Cancel the runs of an execution that are waiting or running."""
    count = await project.records.cancel(execution_id=await execution_id(project.records, target))
    print_result(as_json, {"cancelled": count}, f"{counted(count, 'run')} cancelled.")


@app.command("delete")
@on_project
async def delete_execution(
    project: Project, target: ExecutionArgument, yes: YesOption = False, as_json: JsonOption = False
) -> None:
    """Delete an execution with all its runs."""
    execution = await project.records.execution(await execution_id(project.records, target))
    confirm(f"Delete execution {execution.id} with {counted(execution.counts.total, 'run')}?", yes=yes)
    count = await project.records.delete_execution(execution.id)
    print_result(as_json, {"deleted": count}, f"Deleted, with {counted(count, 'run')}.")
