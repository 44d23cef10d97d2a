"""``evalstudio baseline``: what executions of an eval are compared with."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import JsonOption
from .output import plain, print_json, print_result, print_table, say
from .project import Project, on_project
from .runs import when

app = typer.Typer(no_args_is_help=True, help="Baselines: executions that others are compared with.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Such as: main.", show_default=False)]
EvalOption = Annotated[
    str | None, typer.Option("--eval", help="Of this eval; not needed where it is clear which.")
]


async def _eval_id(project: Project, name: str | None) -> str | None:
    from .eval_start import find_eval

    return (await find_eval(project.records, name)).id if name else None


@app.command("set")
@on_project
async def set_baseline(
    project: Project,
    name: NameArgument,
    execution: Annotated[
        str | None,
        typer.Argument(metavar="EXECUTION", help="Its id, last or last~1; else the last whole one."),
    ] = None,
    eval_name: EvalOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an execution the baseline of this name. It is kept until another takes its place."""
    baseline = await project.set_baseline(name, execution, await _eval_id(project, eval_name))
    text = f'The baseline "{baseline.name}" is execution {baseline.execution_id}.'
    print_result(as_json, plain(baseline), text)


@app.command("list")
@on_project
async def list_baselines(project: Project, eval_name: EvalOption = None, as_json: JsonOption = False) -> None:
    """List the baselines that were set."""
    baselines = await project.baselines(await _eval_id(project, eval_name))
    if as_json:
        print_json([plain(one) for one in baselines])
        return
    if not baselines:
        say("No baselines. Without one, the last whole execution labelled branch=NAME serves.")
        return
    rows = [
        (
            one.name,
            (await project.records.execution(one.execution_id)).eval_name or "-",
            one.execution_id,
            when(one.created_at),
        )
        for one in baselines
    ]
    print_table("Baselines", ("Name", "Eval", "Execution", "Set"), rows)


@app.command("remove")
@on_project
async def remove_baseline(
    project: Project, name: NameArgument, eval_name: EvalOption = None, as_json: JsonOption = False
) -> None:
    """Forget a baseline; its execution stays."""
    await project.remove_baseline(name, await _eval_id(project, eval_name))
    print_result(as_json, {"removed": name}, f'The baseline "{name}" is removed.')
