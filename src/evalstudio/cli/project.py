"""The project a command works on: the one at hand, or one on a server."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from .output import fail

if TYPE_CHECKING:
    from ..base.located import Located
    from ..client import AsyncClient
    from ..connectors.session import ConnectorCheck
    from ..execution.workspace import Workspace
    from ..plugins import PluginRegistry
    from ..project.changes import ProjectState
    from ..project.documents import DefinitionKind, Document
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

    found = config or find_config(Path.cwd())
    if found is None:
        raise InvalidInput(
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
        told = str(error) or "no answer in time"
        raise InvalidInput(f"{url} cannot be reached ({told}); is evalstudio serve running there?") from None


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


class Project(Protocol):
    """Definitions by name, and the records of what was run."""

    @property
    def records(self) -> Records: ...
    async def create(self, kind: DefinitionKind, given: Located) -> Any: ...
    async def update(self, kind: DefinitionKind, name: str, given: Located) -> Any: ...
    async def delete(self, kind: DefinitionKind, name: str) -> str: ...
    async def probe(self, name: str) -> ConnectorCheck: ...


@dataclass(frozen=True, slots=True)
class LocalProject:
    """The project at hand."""

    workspace: Workspace

    @property
    def records(self) -> Records:
        return self.workspace.store

    async def create(self, kind: DefinitionKind, given: Located) -> Any:
        from ..execution.definitions import create

        return await create(self.workspace, kind, given)

    async def update(self, kind: DefinitionKind, name: str, given: Located) -> Any:
        from ..execution.definitions import update

        return await update(self.workspace, kind, name, given)

    async def delete(self, kind: DefinitionKind, name: str) -> str:
        from ..execution.definitions import delete

        return await delete(self.workspace, kind, name)

    async def probe(self, name: str) -> ConnectorCheck:
        from ..execution.connector_test import probe

        return await probe(self.workspace, name)


class RemoteProject:
    """A project on a server, which checks what it is given."""

    def __init__(self, client: AsyncClient) -> None:
        from ..client.records import RemoteRecords

        self.client = client
        self.records: Records = RemoteRecords(client)

    async def create(self, kind: DefinitionKind, given: Located) -> Any:
        from ..execution.definitions import read_given

        project_state = await self._stock()
        return await self._shelf(kind).create(_entity(project_state, read_given(project_state, kind, given)))

    async def update(self, kind: DefinitionKind, name: str, given: Located) -> Any:
        from ..execution.definitions import changed, find

        project_state = await self._stock()
        known = find(project_state, kind, name)
        kept = project_state.entity(known.key)
        entity = _entity(project_state, changed(project_state, known, given))
        return await self._shelf(kind).update(kept.id, entity, version=kept.version)

    async def delete(self, kind: DefinitionKind, name: str) -> str:
        from ..execution.definitions import find

        project_state = await self._stock()
        known = find(project_state, kind, name)
        await self._shelf(kind).delete(project_state.entity(known.key).id)
        return known.name

    async def probe(self, name: str) -> ConnectorCheck:
        from ..connectors.session import ConnectorCheck
        from ..execution.definitions import find

        project_state = await self._stock()
        wanted = project_state.entity(find(project_state, "connector", name).key).id
        found = await self.client.test_connector(wanted)
        return ConnectorCheck(found["success"], found["latencyMs"], found["response"], found["error"])

    async def _stock(self) -> ProjectState:
        from ..execution.definitions import load_project_state

        return await load_project_state(self.records)

    def _shelf(self, kind: DefinitionKind) -> Any:
        return getattr(self.client, f"{kind}s")


def _entity(project_state: ProjectState, document: Document) -> Any:
    """What to send of a document: names back to ids, after a look at whether they are there."""
    from ..project.changes import entity_of
    from ..project.documents import KINDS, check_references

    known: dict[DefinitionKind, list[str]] = {
        kind: [entity.name for entity in project_state.of_kind(kind)] for kind in KINDS
    }
    check_references([document], known).check()
    ids = {key: entity.id for key, entity in project_state.entities.items()}
    return entity_of(document, ids)


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
