"""``evalstudio plugins``: what the project has loaded."""

from __future__ import annotations

import os

import typer

from .options import ConfigOption, JsonOption, open_registry
from .output import print_json, print_table

app = typer.Typer(no_args_is_help=True, help="The plugins of this project.")


@app.callback()
def _group() -> None:  # pyright: ignore[reportUnusedFunction] - keeps "list" a command of its own
    pass


@app.command("list")
def list_plugins(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the loaded plugins and what each brings."""
    loaded = open_registry(config).plugins
    if as_json:
        print_json([plugin.to_json() for plugin in loaded])
    elif not loaded:
        typer.echo('No plugins. List paths, modules or packages under "plugins" in evalstudio.config.json.')
    else:
        rows = [
            (p.name, ", ".join(p.evaluators) or "-", ", ".join(p.connectors) or "-", _near(p.path))
            for p in loaded
        ]
        print_table("Plugins", ("Plugin", "Evaluators", "Connectors", "Path"), rows)


def _near(path: str | None) -> str:
    """A path as it is seen from here, where that is shorter."""
    if path is None:
        return ""
    return min(path, os.path.relpath(path), key=len)
