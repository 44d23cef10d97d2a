"""``evalstudio evaluators``: which evaluators there are and how each is configured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import ConfigOption, JsonOption, open_registry
from .output import fail, print_json, print_table

if TYPE_CHECKING:
    from ..plugins import PluginRegistry

app = typer.Typer(no_args_is_help=True, help="The evaluators a scenario can use.")

TypeArgument = Annotated[str, typer.Argument(metavar="TYPE", help="The evaluator's type, such as regex.")]

_KINDS = {"assertion": "Assertions", "metric": "Metrics"}


@app.command("list")
def list_evaluators(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the evaluators, built in and from plugins."""
    types = open_registry(config).list_evaluator_types()
    if as_json:
        print_json(types)
        return
    columns = ("Type", "Label", "Gate", "Source", "Description")
    for kind, title in _KINDS.items():
        rows = [[item[column.lower()] for column in columns] for item in types if item["kind"] == kind]
        if rows:
            print_table(title, columns, rows)


@app.command("show")
def show_evaluator(type_name: TypeArgument, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show one evaluator: what it checks, its settings, and an entry to copy."""
    from .examples import example_entry

    registry = open_registry(config)
    definition = registry.get_evaluator(type_name)
    if definition is None:
        raise fail(_unknown(registry, type_name))
    example = example_entry(definition)
    described = next(item for item in registry.list_evaluator_types() if item["type"] == type_name)
    if as_json:
        print_json({**described, "example": example})
    else:
        _print_description(described, example)


def _unknown(registry: PluginRegistry, type_name: str) -> str:
    from difflib import get_close_matches

    known = [item["type"] for item in registry.list_evaluator_types()]
    close = get_close_matches(type_name.lower().replace("_", "-"), known, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(close)}?" if close else 'See "evalstudio evaluators list".'
    return f'There is no evaluator of type "{type_name}". {hint}'


def _print_description(described: dict[str, Any], example: dict[str, Any] | None) -> None:
    from rich.console import Console
    from rich.text import Text

    from .fields import fields_of

    console = Console(highlight=False)
    console.print(Text.assemble((described["type"], "bold"), f"  {described['label']}"))
    console.print(Text(f"{described['kind']}, gate {described['gate']}, {described['source']}", "dim"))
    if described["description"]:
        console.print(Text(f"\n{described['description']}"))
    console.print()
    rows = [(f.path, f.type, f.default, f.description) for f in fields_of(described["configSchema"])]
    if rows:
        print_table("Config", ("Field", "Type", "Default", "Description"), rows)
    else:
        console.print("It has no described config.\n" if _is_open(described) else "It takes no config.\n")
    if example is not None:
        _print_example(example)


def _is_open(described: dict[str, Any]) -> bool:
    return described["configSchema"].get("additionalProperties") is not False


def _print_example(example: dict[str, Any]) -> None:
    """Never wrapped: it is there to be copied."""
    typer.echo("An entry of a scenario's evaluators:\n")
    print_json(example)
