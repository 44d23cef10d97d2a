"""Opening the project at hand for a command, and asking before something is lost."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .output import fail

if TYPE_CHECKING:
    from ..execution.workspace import Workspace

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def config_at_hand(config: Path | None) -> Path:
    """The config file given, else the nearest one; a command that needs a project makes none by itself."""
    from ..files import ConfigError
    from ..project.config import find_config

    found = config or find_config(Path.cwd())
    if found is None:
        raise ConfigError(
            "there is no evalstudio.config.json here or in a folder above; "
            'make a project with "evalstudio init"'
        )
    return found


@asynccontextmanager
async def project_at(config: Path | None) -> AsyncGenerator[Workspace]:
    """The project at hand, open."""
    from ..execution.workspace import open_workspace

    async with open_workspace(config_at_hand(config)) as workspace:
        yield workspace


def confirm(question: str, *, yes: bool) -> None:
    """Ask on a terminal; where nobody can answer, --yes must say it."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise fail(f"{question} Nobody can answer here; add --yes.")
    typer.confirm(question, abort=True, err=True)
