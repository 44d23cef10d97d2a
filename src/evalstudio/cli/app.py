"""The commands, one module per noun. Heavy imports wait inside the commands: --help must be instant."""

from __future__ import annotations

from typing import Annotated

import typer

from . import (
    apply,
    connectors,
    db,
    demo,
    evals,
    evaluators,
    executions,
    export,
    init,
    personas,
    plugins,
    runs,
    scenarios,
    schema,
    score,
    serve,
    status,
    worker,
)
from .opening import with_server

app = typer.Typer(
    name="evalstudio",
    help="Is the agent good enough, and did the last change make it better or worse?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("init")(init.init)
app.command("demo")(demo.demo)
app.command("status")(with_server(status.status))
app.command("apply")(apply.apply)
app.command("export")(with_server(export.export))
app.add_typer(evals.app, name="eval")
app.add_typer(runs.app, name="run")
app.add_typer(executions.app, name="execution")
app.add_typer(scenarios.app, name="scenario")
app.add_typer(personas.app, name="persona")
app.add_typer(connectors.app, name="connector")
app.add_typer(evaluators.app, name="evaluators")
app.add_typer(plugins.app, name="plugins")
app.command("score")(score.score)
app.command("serve")(serve.serve)
app.command("worker")(worker.worker)
app.add_typer(db.app, name="db")
app.command("schema")(schema.schema)


def _print_version(wanted: bool) -> None:
    if wanted:
        from ..version import __version__

        typer.echo(f"evalstudio {__version__}")
        raise typer.Exit


@app.callback()
def _options(  # pyright: ignore[reportUnusedFunction] - typer calls it
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
