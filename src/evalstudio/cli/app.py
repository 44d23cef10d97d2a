"""The commands, one module per noun. Heavy imports wait inside the commands: --help must be instant."""

from __future__ import annotations

from typing import Annotated

import typer

from . import (
    baselines,
    compare,
    connectors,
    db,
    evals,
    evaluators,
    executions,
    files,
    monitors,
    new_project,
    personas,
    report,
    rescore,
    review,
    runs,
    scenarios,
    score,
    serve,
    status,
    trusting,
)

app = typer.Typer(
    name="evalstudio",
    help="Is the agent good enough, and did the last change make it better or worse?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("init")(new_project.init)
app.command("demo")(new_project.demo)
app.command("status")(status.status)
app.command("apply")(files.apply)
app.command("export")(files.export)
app.add_typer(evals.app, name="eval")
app.add_typer(runs.app, name="run")
app.add_typer(executions.app, name="execution")
app.command("compare")(compare.compare)
app.add_typer(baselines.app, name="baseline")
app.add_typer(scenarios.app, name="scenario")
app.add_typer(personas.app, name="persona")
app.add_typer(connectors.app, name="connector")
app.add_typer(monitors.app, name="monitor")
app.add_typer(evaluators.app, name="evaluators")
app.add_typer(evaluators.plugins_app, name="plugins")
app.command("score")(score.score)
app.command("review")(review.review)
app.command("rescore")(rescore.rescore)
app.command("report")(report.report)
app.command("serve")(serve.serve)
app.command("worker")(serve.worker)
app.command("trust")(trusting.trust)
app.add_typer(db.app, name="db")
app.command("schema")(files.schema)


def _print_version(requested: bool) -> None:
    if requested:
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
