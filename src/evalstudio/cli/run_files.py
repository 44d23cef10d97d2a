"""Running straight from files, several evals at once, and pointing out files that differ from the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer

from ..base.lazy_dataclass import dataclass
from .output import collected_json, print_table, say, warn
from .project import LocalProject, Project, local_project_at, project_at

if TYPE_CHECKING:
    from ..execution.request import ExecutionRequest
    from ..execution.workspace import ModelOptions, Workspace
    from ..project.changes import DefinitionChange, DefinitionKey
    from ..project.documents import Document
    from ..project.entities import Execution, StoredEval, StoredScenario
    from ..storage.contract import Records

FilesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--file",
        "-f",
        metavar="PATH",
        help="Run from this file or folder as it is, without apply; may be repeated.",
    ),
]
TagOption = Annotated[
    list[str] | None, typer.Option("--tag", help="Only scenarios with this tag; may be repeated.")
]
WatchOption = Annotated[
    bool, typer.Option("--watch", help="Run again what a saved file touches, until Ctrl-C.")
]
WatchAlsoOption = Annotated[
    list[Path] | None,
    typer.Option("--watch-also", metavar="PATH", help="With --watch: a folder of the agent's own code."),
]
TouchedOption = Annotated[list[str] | None, typer.Option("--touched", hidden=True)]

# Worst first: wrong input says nothing of the agent, and a failure outweighs what is not decided.
_WORST = (130, 4, 2, 1, 3, 0)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which evals a command runs, and where their definitions come from."""

    names: tuple[str, ...] = ()
    every: bool = False
    tags: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    touched: tuple[str, ...] | None = None
    """Under --watch: the names of what a saved file touches."""

    @property
    def is_one(self) -> bool:
        """Whether it is the one eval of a name, or the only one there is."""
        name = self.names[0] if self.names else ""
        several = len(self.names) > 1 or self.every or self.tags or self.files
        return not several and not _is_pattern(name)


@asynccontextmanager
async def opened(
    files: Sequence[Path], config: Path | None, server: str | None, options: ModelOptions | None = None
) -> AsyncGenerator[tuple[Project, list[Document]]]:
    """The project to work on, with the definitions of the files over those that are stored."""
    from ..base.problems import InvalidInput
    from ..project.changes import read_files

    if not files:
        async with project_at(config, server, options) as project:
            yield project, []
        return
    if server is not None:
        raise InvalidInput("--file runs on this machine; to run on a server apply the files there")
    documents = read_files(expanded(files))
    async with _local_or_temporary(config, options) as (workspace, path):
        from ..execution.file_definitions import overlaid

        workspace, changes = await overlaid(workspace, documents)
        _tell_differences(changes, files)
        yield LocalProject(workspace, path), documents


def expanded(paths: Iterable[Path]) -> list[Path]:
    """Paths with patterns replaced by what they stand for."""
    from glob import glob

    files: list[Path] = []
    for path in paths:
        matches = sorted(glob(str(path), recursive=True)) if _is_pattern(str(path)) else []
        files += [path] if path.exists() or not matches else map(Path, matches)
    return files


def _is_pattern(name: str) -> bool:
    return any(character in name for character in "*?[")


@asynccontextmanager
async def _local_or_temporary(
    config: Path | None, options: ModelOptions | None
) -> AsyncGenerator[tuple[Workspace, Path]]:
    """The project here; without one, a database that is gone when the command ends."""
    from tempfile import TemporaryDirectory

    from ..execution.workspace import open_workspace
    from ..project.config import StorageSettings, find_config
    from ..project.secrets import SecretBox
    from ..storage.opening import open_store

    if config is not None or find_config(Path.cwd()) is not None:
        async with local_project_at(config, options) as project:
            yield project.workspace, project.config_path
        return
    with TemporaryDirectory(prefix="evalstudio-") as name:
        folder = Path(name)
        store = await open_store(StorageSettings(path="evalstudio.db"), folder)
        try:
            async with open_workspace(None, options, lazy=True, store=store) as workspace:
                warn("There is no project here: results are kept until this command ends.")
                yield replace(workspace, box=SecretBox(folder / "secret.key")), folder
        finally:
            await store.close()


def _tell_differences(changes: Sequence[DefinitionChange], files: Sequence[Path]) -> None:
    """Say which stored definitions the files differ from; what is stored nowhere differs from nothing."""
    different = [f'{change.kind} "{change.name}"' for change in changes if change.sign == "~"]
    if different:
        paths = " ".join(map(str, files))
        warn(f"Stored differently: {listed(different)}. To store the files: evalstudio apply {paths}")


def listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


async def warn_of_changed_files(project: LocalProject, request: ExecutionRequest) -> None:
    """Point out the files that no longer say what is stored of what is about to run."""
    from ..execution.definitions import load_project_state
    from ..execution.file_definitions import OverlaidStore
    from ..project.applied import differing, suspects

    workspace = project.workspace
    if isinstance(cast(Any, workspace.store), OverlaidStore):
        return
    suspected = await asyncio.to_thread(suspects, workspace.folder, await _versions(workspace, request))
    if not suspected:
        return
    state = await load_project_state(workspace.store)
    changed = await asyncio.to_thread(differing, workspace.folder, suspected, state, workspace.box)
    if changed:
        hint = "run them as they are with --file, or store them with: evalstudio apply"
        warn(f"Changed since they were applied: {listed(changed)}; {hint}")


async def _versions(workspace: Workspace, request: ExecutionRequest) -> dict[DefinitionKey, int]:
    from ..project.entities import name_key

    personas = dict.fromkeys(one for scenario in request.scenarios for one in scenario.persona_ids)
    used = [
        *(("scenario", one) for one in request.scenarios),
        *(("connector", one) for one in request.connectors),
        *[("persona", await workspace.store.get("persona", one)) for one in personas],
        *([("eval", request.eval)] if request.eval else []),
    ]
    return {(cast(Any, kind), name_key(one.name)): one.version for kind, one in used}


# An eval by name or id, none being the only one, and the scenarios it is narrowed to.
Chosen = tuple[str | None, tuple[str, ...]]


async def chosen_evals(
    project: Project, selection: Selection, documents: Sequence[Document], only: tuple[str, ...]
) -> list[Chosen]:
    """What to run, and of each eval which scenarios."""
    from ..base.problems import InvalidInput

    if selection.tags and only:
        raise InvalidInput("--only and --tag exclude each other")
    if selection.is_one and selection.touched is None:
        return [(selection.names[0] if selection.names else None, only)]
    evals = await _chosen(project.records, selection, documents)
    if selection.touched is not None:
        evals = [one for one in evals if one.name in selection.touched]
    if not selection.tags:
        return [(one.id, only) for one in evals]
    return await _tagged(project.records, evals, selection.tags)


async def _chosen(records: Records, selection: Selection, documents: Sequence[Document]) -> list[StoredEval]:
    from ..base.problems import InvalidInput
    from ..project.entities import name_key
    from ..storage.contract import every_item

    items = every_item(lambda cursor: records.list_of("eval", cursor=cursor, limit=500))
    evals = cast("list[StoredEval]", [one async for one in items])
    evals.sort(key=lambda one: one.name)
    if selection.names:
        matches = [one for name in selection.names for one in _matching(evals, name)]
        return list({one.id: one for one in matches}.values())
    if selection.files:
        in_files = {document.key[1] for document in documents if document.kind == "eval"}
        evals = [one for one in evals if name_key(one.name) in in_files]
        if not evals:
            hint = "run the scenarios with: evalstudio run --file PATH --connector NAME"
            raise InvalidInput(f"there is no eval in {' '.join(map(str, selection.files))}; {hint}")
    if not evals:
        raise InvalidInput('there is no eval yet; define one in a file and run "evalstudio apply FILE"')
    return evals


def _matching(evals: Sequence[StoredEval], name: str) -> list[StoredEval]:
    """The eval of this name or id, else those whose names the pattern fits."""
    from fnmatch import fnmatchcase

    from ..base.problems import InvalidInput, Problem, suggestion
    from ..project.entities import name_key

    exact = [one for one in evals if one.id == name or name_key(one.name) == name_key(name)]
    matches = exact or [one for one in evals if fnmatchcase(name_key(one.name), name_key(name))]
    if not matches:
        hint = suggestion(name, [one.name for one in evals])
        raise InvalidInput(Problem(f'there is no eval called "{name}"', hint=hint))
    return matches


async def _tagged(records: Records, evals: Sequence[StoredEval], tags: Sequence[str]) -> list[Chosen]:
    """The evals narrowed to their scenarios with all of the tags; those without any are left out."""
    from ..base.problems import InvalidInput
    from ..storage.contract import every_item

    items = every_item(lambda cursor: records.list_of("scenario", cursor=cursor, limit=500))
    scenarios = {one.id: one async for one in cast("Any", items)}
    parts: list[Chosen] = []
    for one in evals:
        own: list[StoredScenario] = [scenarios[key] for key in one.scenario_ids if key in scenarios]
        names = tuple(scenario.name for scenario in own if set(tags) <= set(scenario.tags))
        if names:
            # All of them is the whole eval, which is no narrower than without the tag.
            parts.append((one.id, () if len(names) == len(own) else names))
    if not parts:
        raise InvalidInput(
            f"no scenario of {listed([one.name for one in evals])} is tagged {', '.join(tags)}"
        )
    return parts


Ran = tuple[int, "Execution | None"]
T = TypeVar("T")


async def run_each(parts: Sequence[T], run: Callable[[T], Awaitable[Ran]], *, as_json: bool) -> int:
    """Run the parts one after the other; the exit code is that of the worst."""
    if not parts:
        say("Nothing that is chosen here was touched.")
        return 0
    if len(parts) == 1:
        code, _ = await run(parts[0])
        return code
    ran: list[Ran] = []
    with collected_json():
        for part in parts:
            ran.append(await _one_of_several(part, run))
            if ran[-1][0] == 130:
                break
    if not as_json:
        rows = [_row(code, execution) for code, execution in ran if execution is not None]
        print_table("Evals", ("Eval", "Runs", "Passed", "Failed", "Errored", "Execution", "Result"), rows)
        if left := len(parts) - len(ran):
            warn(f"{left} evals were not started.")
    return worst(code for code, _ in ran)


async def _one_of_several(part: T, run: Callable[[T], Awaitable[Ran]]) -> Ran:
    """One of several evals: what is wrong with it keeps none of the others from being run."""
    from ..base.problems import InvalidInput
    from ..execution.request import NothingFailed

    try:
        return await run(part)
    except NothingFailed as error:
        warn(str(error))
        return 0, None
    except InvalidInput as error:
        warn(f"Error: {error}")
        return 2, None


_RESULTS = {0: "met", 1: "missed", 3: "not decided", 130: "stopped"}


def _row(code: int, execution: Execution) -> tuple[str, ...]:
    counts = execution.counts
    numbers = (counts.total, counts.passed, counts.failed, counts.errored)
    result = _RESULTS.get(code, str(code))
    return execution.eval_name or "-", *(f"{number:,}" for number in numbers), execution.id, result


def worst(codes: Iterable[int]) -> int:
    """The exit code of several commands."""
    return min(codes, key=lambda code: _WORST.index(code) if code in _WORST else 0, default=0)
