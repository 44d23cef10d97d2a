"""The options that several commands have alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        envvar="EVALSTUDIO_SERVER",
        help="The project on this server; its token comes from EVALSTUDIO_TOKEN.",
        show_default=False,
    ),
]
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
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
ConcurrencyOption = Annotated[int | None, typer.Option(min=1, max=1000, help="Runs at the same time.")]
