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
RequireOption = Annotated[
    list[str] | None,
    typer.Option(
        "--require",
        metavar="TEXT|FILE",
        help="What must be reached: passRate>=0.9, or a file with a list; may be repeated.",
        show_default=False,
    ),
]
ReportOption = Annotated[
    list[str] | None,
    typer.Option(
        "--report",
        metavar="FORMAT=PATH",
        help="Also write a report: junit=out.xml, md=-, html, csv, json, jsonl; may be repeated.",
        show_default=False,
    ),
]
ConcurrencyOption = Annotated[int | None, typer.Option(min=1, max=1000, help="Runs at the same time.")]
