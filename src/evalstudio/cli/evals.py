"""``evalstudio eval``: named sets of scenarios, and running them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from . import definitions as shared
from .eval_run import eval_run
from .project import ConfigOption, JsonOption, YesOption, with_server

app = typer.Typer(no_args_is_help=True, help="Evals: sets of scenarios for one or more connectors.")
app.command("run")(with_server(eval_run))

ScenarioOption = Annotated[list[str] | None, typer.Option("--scenario", help="May be repeated.")]
ConnectorOption = Annotated[list[str] | None, typer.Option("--connector", help="May be repeated.")]
RepetitionsOption = Annotated[int | None, typer.Option(help="How often each combination runs.")]


@app.command("list")
@with_server
def list_evals(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the evals."""
    columns = ("Eval", "Repetitions", "Connectors", "Scenarios")
    shared.print_list("eval", config, as_json, columns, _row)


def _row(body: Any) -> tuple[str, ...]:
    times = str(body.get("repetitions", 1))
    return body["name"], times, shared.joined(body["connectors"]), shared.joined(body["scenarios"])


@app.command("show")
@with_server
def show_eval(name: shared.NameArgument, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show an eval as YAML."""
    shared.print_one("eval", name, config, as_json)


@app.command("create")
@with_server
def create_eval(
    name: shared.NewNameOption = None,
    scenario: ScenarioOption = None,
    connector: ConnectorOption = None,
    repetitions: RepetitionsOption = None,
    file: shared.FileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an eval, from options or a file."""
    fields = {"name": name, "scenarios": scenario, "connectors": connector, "repetitions": repetitions}
    shared.keep_new("eval", shared.given_fields("eval", file, fields), config, as_json)


@app.command("update")
@with_server
def update_eval(
    eval_name: Annotated[str, typer.Argument(metavar="NAME", help="Its name or id.")],
    name: shared.NewNameOption = None,
    scenario: ScenarioOption = None,
    connector: ConnectorOption = None,
    repetitions: RepetitionsOption = None,
    file: shared.FileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the given fields of an eval; the others stay."""
    fields = {"name": name, "scenarios": scenario, "connectors": connector, "repetitions": repetitions}
    shared.keep_changed("eval", eval_name, shared.given_fields("eval", file, fields), config, as_json)


@app.command("delete")
@with_server
def delete_eval(
    name: shared.NameArgument,
    yes: YesOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete an eval. Its executions stay."""
    shared.remove("eval", name, config, as_json, yes)
