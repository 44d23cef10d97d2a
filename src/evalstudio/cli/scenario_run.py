"""``evalstudio run --file``: the scenarios of files against a connector, in a project or without one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import ConcurrencyOption, ConfigOption, JsonOption
from .output import say
from .project import LocalProject, run_async
from .run_files import (
    FilesOption,
    TagOption,
    TouchedOption,
    WatchAlsoOption,
    WatchOption,
    listed,
    opened,
)

if TYPE_CHECKING:
    from ..project.documents import Document
    from ..project.entities import StoredConnector, StoredScenario


def run_scenarios(
    context: typer.Context,
    file: FilesOption = None,
    connector: Annotated[
        list[str] | None,
        typer.Option(help="A connector's name, http://… or module:function; may be repeated."),
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Only this scenario; may be repeated.")] = None,
    tag: TagOption = None,
    repeat: Annotated[int, typer.Option(min=1, help="Repetitions of each.")] = 1,
    concurrency: ConcurrencyOption = None,
    watch: WatchOption = False,
    watch_also: WatchAlsoOption = None,
    touched: TouchedOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Runs: what was said and how it was judged.

    With --file: run the scenarios of files against a connector, without apply. Exit codes as of eval run.
    """
    from ..base.problems import InvalidInput

    if context.invoked_subcommand is not None:
        if file or connector:
            raise InvalidInput(f"--file and --connector are not for {context.invoked_subcommand}")
        return
    if not file:
        raise InvalidInput('name a command, such as "run list", or files of scenarios with --file')
    if watch:
        from .watch import watch_files

        raise typer.Exit(watch_files(file, config, watch_also or (), kind="scenario"))
    names = tuple(only or ()), tuple(tag or ()), tuple(connector or ())
    chosen = frozenset(touched) if touched else None
    work = partial(_run_scenarios, tuple(file), *names, chosen, repeat, concurrency, config, as_json)
    if code := run_async(work()):
        raise typer.Exit(code)


async def _run_scenarios(
    files: tuple[Path, ...],
    only: tuple[str, ...],
    tags: tuple[str, ...],
    connectors: tuple[str, ...],
    touched: frozenset[str] | None,
    repeat: int,
    concurrency: int | None,
    config: Path | None,
    as_json: bool,
) -> int:
    from ..base.outages import riding_out
    from ..base.signals import stop_on_signals
    from ..execution.request import ExecutionRequest, start_execution
    from .eval_run import conclude_and_print, follow

    stop = asyncio.Event()
    async with opened(files, config, None) as (project, documents):
        assert isinstance(project, LocalProject), "files are run here"
        scenarios = await _scenarios(project, documents, only, tags, files)
        if touched is not None:
            scenarios = [one for one in scenarios if one.name in touched]
            if not scenarios:
                say("Nothing that is chosen here was touched.")
                return 0
        agents = await _connectors(project, documents, connectors)
        with stop_on_signals(stop.set), riding_out():
            request = ExecutionRequest(scenarios, agents, repeat)
            execution = await start_execution(project.workspace, request)
            done = await follow(project, execution, stop, concurrency, quiet=as_json)
        return await conclude_and_print(project, done, as_json=as_json, stopped=stop.is_set())


async def _scenarios(
    project: LocalProject,
    documents: Sequence[Document],
    only: Sequence[str],
    tags: Sequence[str],
    files: Sequence[Path],
) -> list[StoredScenario]:
    """The scenarios of the files, narrowed by name and tag."""
    from ..base.problems import InvalidInput, Problem, suggestion
    from ..project.entities import name_key

    names = [document.name for document in documents if document.kind == "scenario"]
    keys = {name_key(name) for name in names}
    if unknown := [name for name in only if name_key(name) not in keys]:
        hint = suggestion(unknown[0], names)
        raise InvalidInput(Problem(f'there is no scenario called "{unknown[0]}" in the files', hint=hint))
    chosen = [name for name in names if not only or name_key(name) in set(map(name_key, only))]
    stored = [await project.workspace.store.find("scenario", name) for name in chosen]
    scenarios = [one for one in stored if one is not None and set(tags) <= set(one.tags)]
    if not scenarios:
        tagged = f" tagged {', '.join(tags)}" if tags else ""
        raise InvalidInput(f"there is no scenario{tagged} in {' '.join(map(str, files))}")
    return scenarios


async def _connectors(
    project: LocalProject, documents: Sequence[Document], names: Sequence[str]
) -> list[StoredConnector]:
    """Those that are named; without a name, the only one of the files, else the project's only one."""
    from ..base.problems import InvalidInput
    from ..project.entities import StoredConnector

    store = project.workspace.store
    if names:
        return [await _connector(project, name) for name in names]
    in_files = [document.name for document in documents if document.kind == "connector"]
    known = [one for one in (await store.list_of("connector")).items if isinstance(one, StoredConnector)]
    known.sort(key=lambda one: one.name)
    candidates = [one for one in known if one.name in in_files] or known
    if len(candidates) == 1:
        return candidates
    choice = f"there are {listed([one.name for one in candidates])}" if candidates else "none is defined"
    raise InvalidInput(f"say which agent to talk to with --connector: {choice}")


async def _connector(project: LocalProject, name: str) -> StoredConnector:
    """A connector by its name, or one made of the address or function that was typed."""
    from ..base.problems import InvalidInput, Problem, suggestion
    from ..execution.file_definitions import named_id
    from ..project.entities import StoredConnector

    workspace = project.workspace
    if (known := await workspace.store.find("connector", name)) is not None:
        return known
    identity = {"id": named_id("connector", name), "name": name}
    if name.startswith(("http://", "https://")):
        return StoredConnector.model_validate({**identity, "type": "http", "baseUrl": name})
    module, colon, function = name.partition(":")
    if colon and all(part.isidentifier() for part in (*module.split("."), function)):
        modules = [*workspace.config.python_modules, module]
        workspace.config = workspace.config.model_copy(update={"python_modules": modules})
        return StoredConnector.model_validate({**identity, "type": "python", "config": {"function": name}})
    names = [one.name for one in (await workspace.store.list_of("connector")).items]
    raise InvalidInput(Problem(f'there is no connector called "{name}"', hint=suggestion(name, names)))
