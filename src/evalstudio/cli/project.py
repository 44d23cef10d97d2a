"""The project a command works on: the one at hand, or one on a server."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, redirect_stdout
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from .output import fail

if TYPE_CHECKING:
    from ..base.located import Located
    from ..client import AsyncClient
    from ..client.asynchronous import AsyncDefinitions
    from ..connectors.session import ConnectorCheck
    from ..execution.workspace import Workspace
    from ..plugins import PluginRegistry
    from ..project.documents import AnyStored, DefinitionKind
    from ..project.entities import StoredConnector
    from ..storage.contract import Records

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
    from ..base.problems import InvalidInput
    from ..project.config import find_config

    path = config or find_config(Path.cwd())
    if path is None:
        raise InvalidInput(
            "there is no evalstudio.config.json here or in a folder above; "
            'make a project with "evalstudio init"'
        )
    return path


@asynccontextmanager
async def workspace_at(config: Path | None) -> AsyncGenerator[Workspace]:
    """The project at hand, open."""
    from ..execution.workspace import open_workspace

    async with open_workspace(config_at_hand(config)) as workspace:
        yield workspace


@asynccontextmanager
async def project_at(config: Path | None) -> AsyncGenerator[Project]:
    """The project on the server that was named, else the one at hand."""

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

    from ..base.problems import InvalidInput
    from ..client import AsyncClient

    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f'--server takes an address such as http://127.0.0.1:3000, not "{url}"')
    try:
        async with AsyncClient(url, os.environ.get("EVALSTUDIO_TOKEN")) as client:
            yield client
    except (ClientError, TimeoutError) as error:
        reason = str(error) or "no answer in time"
        raise InvalidInput(
            f"{url} cannot be reached ({reason}); is evalstudio serve running there?"
        ) from None


def server_url(config: Path | None) -> str | None:
    """The server a command was told to use."""
    if (url := _server.get()) is not None and config is not None:
        raise fail("--server and --config exclude each other")
    return url


def with_server(command: Callable[..., None]) -> Callable[..., None]:
    """The same command with one more option: a server whose project it is about."""

    @wraps(command)
    def call(*, server: str | None, **values: Any) -> None:
        _server.set(server)
        command(**values)

    return with_parameters(call, [*parameters_of(command), parameter("server", _ServerOption)])


def parameters_of(command: Callable[..., None]) -> list[inspect.Parameter]:
    return list(inspect.signature(command, eval_str=True).parameters.values())


def parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def with_parameters(
    command: Callable[..., None], parameters: Iterable[inspect.Parameter]
) -> Callable[..., None]:
    """The command with the parameters that typer is to make options and arguments of."""
    named = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    signature = inspect.Signature(named)
    command.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess] - read by inspect
    return command


def confirm(question: str, *, yes: bool) -> None:
    """Ask on a terminal; where nobody can answer, --yes must say it."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise fail(f"{question} Nobody can answer here; add --yes.")
    typer.confirm(question, abort=True, err=True)


class Project(Protocol):
    """The definitions of a project, and the records of what was run.

    What is changed or deleted must still be the version that was read.
    """

    @property
    def records(self) -> Records: ...
    async def create(self, kind: DefinitionKind, definition: AnyStored, located: Located) -> AnyStored: ...
    async def update(
        self, kind: DefinitionKind, known: AnyStored, definition: AnyStored, located: Located
    ) -> AnyStored: ...
    async def delete(self, kind: DefinitionKind, known: AnyStored) -> None: ...
    async def test(self, connector: StoredConnector) -> ConnectorCheck: ...


class LocalProject:
    """The project at hand."""

    def __init__(self, workspace: Workspace) -> None:
        from ..execution.definitions import DefinitionService

        self.workspace = workspace
        self.records: Records = workspace.store
        self._definitions = DefinitionService(workspace)

    async def create(self, kind: DefinitionKind, definition: AnyStored, located: Located) -> AnyStored:
        return await self._definitions.create(kind, definition, located=located)

    async def update(
        self, kind: DefinitionKind, known: AnyStored, definition: AnyStored, located: Located
    ) -> AnyStored:
        return await self._definitions.update(
            kind, known.id, definition, expected=known.version, located=located
        )

    async def delete(self, kind: DefinitionKind, known: AnyStored) -> None:
        await self._definitions.delete(kind, known.id, expected=known.version)

    async def test(self, connector: StoredConnector) -> ConnectorCheck:
        from ..execution.connector_test import check_agent

        return await check_agent(self.workspace, connector)


class RemoteProject:
    """A project on a server, which checks what it is sent."""

    def __init__(self, client: AsyncClient) -> None:
        from ..client.records import RemoteRecords

        self.client = client
        self.records: Records = RemoteRecords(client)

    async def create(self, kind: DefinitionKind, definition: AnyStored, located: Located) -> AnyStored:
        return await self._of(kind).create(definition)

    async def update(
        self, kind: DefinitionKind, known: AnyStored, definition: AnyStored, located: Located
    ) -> AnyStored:
        return await self._of(kind).update(known.id, definition, version=known.version)

    async def delete(self, kind: DefinitionKind, known: AnyStored) -> None:
        await self._of(kind).delete(known.id, version=known.version)

    async def test(self, connector: StoredConnector) -> ConnectorCheck:
        from ..connectors.session import ConnectorCheck

        answer = await self.client.test_connector(connector.id)
        return ConnectorCheck(answer["success"], answer["latencyMs"], answer["response"], answer["error"])

    def _of(self, kind: DefinitionKind) -> AsyncDefinitions[Any, Any]:
        return getattr(self.client, f"{kind}s")


T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    try:
        import uvloop
    except ImportError:
        import asyncio

        return asyncio.run(work)
    return uvloop.run(work)


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
