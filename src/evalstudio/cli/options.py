"""Options several commands share, and the registry they lead to."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..plugins import PluginRegistry

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="PATH",
        help="The config file; else the nearest evalstudio.config.json or .yaml up the folders.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Plain JSON for other programs.")]


def open_registry(config: Path | None) -> PluginRegistry:
    """The registry of the project at hand; outside a project, the built-ins."""
    from ..plugins import create_registry, load_plugins
    from ..project.config import find_config, read_config

    path = config or find_config(Path.cwd())
    if path is None:
        return create_registry()
    read_config(path)
    # What a plugin prints while it is imported must not end up inside our JSON.
    with redirect_stdout(sys.stderr):
        return load_plugins(path)
