"""The options that several commands have alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..project.entities import AgentErrors

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
OnOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="local|ray",
        help="Where work is done, instead of what the config file says: here, or on a Ray cluster.",
        show_default=False,
    ),
]
ConcurrencyOption = Annotated[int | None, typer.Option(min=1, max=1000, help="Runs at the same time.")]
AllOption = Annotated[bool, typer.Option("--all", help="Every eval.")]
RepeatOption = Annotated[int | None, typer.Option(min=1, help="Repetitions, instead of the eval's own.")]
OnlyOption = Annotated[list[str] | None, typer.Option(help="Only this scenario; may be repeated.")]
ConnectorsOption = Annotated[
    list[str] | None, typer.Option("--connector", help="Against this connector; may be repeated.")
]
LastFailedOption = Annotated[
    bool, typer.Option("--last-failed", help="Only what did not pass in the last execution.")
]
AgentErrorsOption = Annotated[
    str | None, typer.Option(help="Count an agent's errors as: error (neither pass nor failure) or fail.")
]
LabelsOption = Annotated[list[str] | None, typer.Option(help="key=value kept with the execution.")]
UntilOption = Annotated[
    str | None, typer.Option(help='With "decided": repeat only what is still open, up to --repeat times.')
]
MaxCostOption = Annotated[float | None, typer.Option(help="End it when this many US dollars are used.")]
MaxTokensOption = Annotated[int | None, typer.Option(help="End it when this many tokens are used.")]
MaxTimeOption = Annotated[float | None, typer.Option(help="End it after so many seconds.")]
RecordOption = Annotated[Path | None, typer.Option(help="Record what models and agents answer here.")]
ReplayOption = Annotated[Path | None, typer.Option(help="Answer from this recording; a miss fails.")]
CacheOption = Annotated[bool, typer.Option("--cache", help="Keep model answers and use them again.")]


def read_agent_errors(agent_errors: str | None) -> AgentErrors | None:
    """What ``--agent-errors`` says."""
    from ..base.problems import InvalidInput

    if agent_errors not in (None, "error", "fail"):
        raise InvalidInput(f'--agent-errors is "error" or "fail", not "{agent_errors}"')
    return agent_errors
