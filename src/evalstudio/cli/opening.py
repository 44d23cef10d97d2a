"""Opening the project at hand for a command, and asking before something is lost."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .output import fail

if TYPE_CHECKING:
    from ..client import AsyncClient
    from ..execution.workspace import Workspace
    from .projects import Project

_ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        envvar="EVALSTUDIO_SERVER",
        help="The project on this server; its token comes from EVALSTUDIO_TOKEN.",
        show_default=False,
    ),
]
_server: ContextVar[str | None] = ContextVar("server", default=None)

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
async def workspace_at(config: Path | None) -> AsyncGenerator[Workspace]:
    """The project at hand, open."""
    from ..execution.workspace import open_workspace

    async with open_workspace(config_at_hand(config)) as workspace:
        yield workspace


@asynccontextmanager
async def project_at(config: Path | None) -> AsyncGenerator[Project]:
    """The project on the server that was named, else the one at hand."""
    from .projects import LocalProject, RemoteProject

    url = server_url(config)
    if url is None:
        async with workspace_at(config) as workspace:
            yield LocalProject(workspace)
    else:
        async with client_at(url) as client:
            yield RemoteProject(client)


@asynccontextmanager
async def client_at(url: str) -> AsyncGenerator[AsyncClient]:
    """A client of a server; that it cannot be reached is said in words."""
    from aiohttp import ClientError

    from ..client import AsyncClient
    from ..files import ConfigError

    if not url.startswith(("http://", "https://")):
        raise ConfigError(f'--server takes an address such as http://127.0.0.1:3000, not "{url}"')
    try:
        async with AsyncClient(url, os.environ.get("EVALSTUDIO_TOKEN")) as client:
            yield client
    except (ClientError, TimeoutError) as error:
        told = str(error) or "no answer in time"
        raise ConfigError(f"{url} cannot be reached ({told}); is evalstudio serve running there?") from None


def server_url(config: Path | None) -> str | None:
    """The server a command was told to use."""
    if (url := _server.get()) is not None and config is not None:
        raise fail("--server and --config exclude each other")
    return url


def with_server(command: Callable[..., None]) -> Callable[..., None]:
    """The same command with one more option: a server whose project it is about."""

    @wraps(command)
    def call(*, server: str | None, **given: Any) -> None:
        _server.set(server)
        command(**given)

    known = inspect.signature(command, eval_str=True)
    more = inspect.Parameter("server", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_ServerOption)
    call.__signature__ = known.replace(  # pyright: ignore[reportAttributeAccessIssue] - read by inspect
        parameters=[*known.parameters.values(), more]
    )
    return call


def confirm(question: str, *, yes: bool) -> None:
    """Ask on a terminal; where nobody can answer, --yes must say it."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise fail(f"{question} Nobody can answer here; add --yes.")
    typer.confirm(question, abort=True, err=True)
