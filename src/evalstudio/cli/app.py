"""The commands, one module per noun. Heavy imports wait inside the commands: --help must be instant."""

from __future__ import annotations

from typing import Annotated

import typer

from . import demo, evals, evaluators, plugins, schema, score, worker

app = typer.Typer(
    name="evalstudio",
    help="Is the agent good enough, and did the last change make it better or worse?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(evaluators.app, name="evaluators")
app.add_typer(plugins.app, name="plugins")
app.add_typer(evals.app, name="eval")
app.command("demo")(demo.demo)
app.command("worker")(worker.worker)
app.command("score")(score.score)
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
