"""The project a command works on: the local one, or one on a server."""

from __future__ import annotations

import atexit
import gc
import inspect
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, redirect_stdout
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import typer

from ..base.text import printable
from .exit_codes import STOPPED
from .options import ConfigOption, ServerOption
from .output import fail

if TYPE_CHECKING:
    from ..base.located import Located
    from ..client import AsyncClient
    from ..client.asynchronous import AsyncDefinitions
    from ..connectors.session import ConnectorCheck
    from ..execution.comparing import ComparisonRequest
    from ..execution.definitions import DefinitionService
    from ..execution.workspace import ModelOptions, Workspace
    from ..plugins import PluginRegistry
    from ..project.documents import AnyStored, DefinitionKind
    from ..project.entities import Baseline, StoredConnector
    from ..reporting.comparison import ComparisonResult
    from ..storage.contract import Records


def config_path(config: Path | None) -> Path:
    """The config file given, else the nearest one; a command that needs a project makes none by itself."""
    from ..base.problems import InvalidInput
    from ..project.config import find_config

    path = config or find_config(Path.cwd())
    if path is None:
        missing = "there is no evalstudio.config.json here or in a folder above"
        raise InvalidInput(f'{missing}; make a project with "evalstudio init"')
    return path


@asynccontextmanager
async def local_project_at(
    config: Path | None, options: ModelOptions | None = None
) -> AsyncGenerator[LocalProject]:
    from ..execution.workspace import open_workspace

    path = config_path(config)
    async with open_workspace(path, options, lazy=True) as workspace:
        yield LocalProject(workspace, path)


@asynccontextmanager
async def project_at(
    config: Path | None, server: str | None, options: ModelOptions | None = None
) -> AsyncGenerator[Project]:
    """The project on the server, if one is named, else the local one."""
    if server is None:
        async with local_project_at(config, options) as project:
            yield project
    else:
        async with client_at(server, config) as client:
            yield RemoteProject(client)


@asynccontextmanager
async def client_at(url: str, config: Path | None = None) -> AsyncGenerator[AsyncClient]:
    """A client of a server."""
    from ..base.problems import InvalidInput
    from ..client import AsyncClient

    if config is not None:
        raise fail("--server and --config exclude each other")
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f'--server takes an address such as http://127.0.0.1:3000, not "{url}"')
    async with AsyncClient(url, os.environ.get("EVALSTUDIO_TOKEN")) as client:
        yield client


AsyncCommand = Callable[..., Coroutine[Any, Any, int | None]]


def _opening(
    opened: Callable[..., AbstractAsyncContextManager[Any]], **options: Any
) -> Callable[[AsyncCommand], Callable[..., None]]:
    """A decorator of commands whose first parameter is opened from ``options``, which it adds.

    What the command returns, if anything, is the exit code.
    """

    def decorate(command: AsyncCommand) -> Callable[..., None]:
        @wraps(command)
        def call(**values: Any) -> None:
            target = {name: values.pop(name) for name in options}

            async def work() -> int | None:
                async with opened(**target) as project:
                    return await command(project, **values)

            if code := run_async(work()):
                raise typer.Exit(code)

        _, *own, as_json = parameters_of(command)
        config, *others = (parameter(name, annotation) for name, annotation in options.items())
        return with_parameters(call, [*own, config, as_json, *others])

    return decorate


on_project = _opening(project_at, config=ConfigOption, server=ServerOption)
on_local_project = _opening(local_project_at, config=ConfigOption)


def parameters_of(command: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(command, eval_str=True).parameters.values())


def parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def with_parameters(
    command: Callable[..., None], parameters: Iterable[inspect.Parameter]
) -> Callable[..., None]:
    """The command with the parameters that typer is to make options and arguments of."""
    signature = inspect.Signature([one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters])
    command.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess] - read by inspect
    return command


def confirm(question: str, *, yes: bool, option: str = "--yes") -> None:
    """Ask on a terminal; where nobody can answer, an option must say it."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise fail(f"{question} Nobody can answer here; add {option}.")
    typer.confirm(printable(question), abort=True, err=True)


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
    async def compare(self, request: ComparisonRequest) -> ComparisonResult: ...
    async def baselines(self, eval_id: str | None) -> list[Baseline]: ...
    async def set_baseline(self, name: str, execution: str | None, eval_id: str | None) -> Baseline: ...
    async def remove_baseline(self, name: str, eval_id: str | None) -> None: ...


class LocalProject:
    """The project in a folder of this machine."""

    def __init__(self, workspace: Workspace, path: Path) -> None:
        self.workspace, self.config_path = workspace, path
        self.records: Records = workspace.store

    @cached_property
    def definitions(self) -> DefinitionService:
        from ..execution.definitions import DefinitionService

        return DefinitionService(self.workspace)

    async def create(self, kind: DefinitionKind, definition: AnyStored, located: Located) -> AnyStored:
        return await self.definitions.create(kind, definition, located=located)

    async def update(
        self, kind: DefinitionKind, known: AnyStored, definition: AnyStored, located: Located
    ) -> AnyStored:
        return await self.definitions.update(
            kind, known.id, definition, expected=known.version, located=located
        )

    async def delete(self, kind: DefinitionKind, known: AnyStored) -> None:
        await self.definitions.delete(kind, known.id, expected=known.version)

    async def test(self, connector: StoredConnector) -> ConnectorCheck:
        from ..execution.connector_test import check_agent

        return await check_agent(self.workspace, connector)

    async def compare(self, request: ComparisonRequest) -> ComparisonResult:
        from ..execution.comparing import compare_named

        return await compare_named(self.workspace.store, request)

    async def baselines(self, eval_id: str | None) -> list[Baseline]:
        return await self.workspace.store.baselines(eval_id)

    async def set_baseline(self, name: str, execution: str | None, eval_id: str | None) -> Baseline:
        from ..execution.baselines import set_baseline

        return await set_baseline(self.workspace.store, name, execution, eval_id=eval_id)

    async def remove_baseline(self, name: str, eval_id: str | None) -> None:
        from ..execution.baselines import remove_baseline

        await remove_baseline(self.workspace.store, name, eval_id=eval_id)


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

    async def compare(self, request: ComparisonRequest) -> ComparisonResult:
        base, candidate = request.connectors or (None, None)
        return await self.client.compare(
            request.base,
            request.candidate,
            evalId=request.eval_id,
            baseConnector=base,
            candidateConnector=candidate,
            alpha=request.alpha,
            minEffect=request.min_effect,
            allowGone="true" if request.allow_gone else None,
        )

    async def baselines(self, eval_id: str | None) -> list[Baseline]:
        return await self.client.baselines(eval_id)

    async def set_baseline(self, name: str, execution: str | None, eval_id: str | None) -> Baseline:
        return await self.client.set_baseline(name, execution, eval_id=eval_id)

    async def remove_baseline(self, name: str, eval_id: str | None) -> None:
        await self.client.remove_baseline(name, eval_id=eval_id)

    def _of(self, kind: DefinitionKind) -> AsyncDefinitions[Any, Any]:
        return getattr(self.client, f"{kind}s")


T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    import asyncio

    # The collection at the end of a process looks at all that is there, for seconds where agents sent much.
    atexit.register(gc.freeze)
    try:
        from uvloop import run
    except ImportError:
        run = asyncio.run
    try:
        return run(work)
    except asyncio.CancelledError:
        # The second Ctrl-C, which ends the work at once.
        raise typer.Exit(STOPPED) from None


def open_registry(config: Path | None) -> PluginRegistry:
    """The registry of the local project; outside a project, the built-ins."""
    from ..plugins import create_registry, load_plugins
    from ..project.config import find_config, read_config

    path = config or find_config(Path.cwd())
    if path is None:
        return create_registry()
    read_config(path)
    # What a plugin prints while it is imported must not end up inside our JSON.
    with redirect_stdout(sys.stderr):
        return load_plugins(path)
