"""``evalstudio eval``: named sets of scenarios, and running them."""

from __future__ import annotations

import typer

from .eval_run import eval_run

app = typer.Typer(no_args_is_help=True, help="Evals: sets of scenarios for one or more connectors.")
app.command("run")(eval_run)


@app.callback()
def _group() -> None:  # pyright: ignore[reportUnusedFunction] - keeps "run" a command of its own
    pass
