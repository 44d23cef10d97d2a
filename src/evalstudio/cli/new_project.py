"""``evalstudio init`` and ``demo``: a project that runs at once."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from .options import JsonOption
from .output import fail, print_json, say, write_files
from .project import local_project_at, run_async

_TEMPLATES = Path(__file__).parent.parent / "templates"
_CONFIG = "evalstudio.config.json"


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where; this folder by default.")] = Path(),
    name: Annotated[str | None, typer.Option(help="The project's name; else the folder's.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a project that runs at once."""
    files = make_project(folder, name)
    if as_json:
        print_json({"folder": str(folder), "files": [str(path) for path in files]})
    else:
        _print_next(folder, files)


def make_project(folder: Path, name: str | None = None) -> list[Path]:
    """Write the files of a new project and store what they define; the paths of the files."""
    files = _files(folder, name or folder.resolve().name or "project")
    _refuse_to_overwrite(folder, files)
    write_files(files)
    run_async(_apply(folder))
    return list(files)


def _files(folder: Path, name: str) -> dict[Path, str]:
    """What is written: path and text. A .gitignore that is there already stays as it is."""
    files: dict[Path, str] = {}
    starter = _TEMPLATES / "starter"
    for source in sorted(starter.rglob("*")):
        if source.is_dir() or "__pycache__" in source.parts:
            continue
        relative = source.relative_to(starter)
        path = folder / (".gitignore" if str(relative) == "gitignore" else relative)
        if path.name == ".gitignore" and path.exists():
            continue
        text = source.read_text(encoding="utf-8")
        if path.name == _CONFIG:
            text = text.replace('"NAME"', json.dumps(name, ensure_ascii=False))
        files[path] = text
    return files


def _refuse_to_overwrite(folder: Path, files: dict[Path, str]) -> None:
    from ..project.config import CONFIG_NAMES

    if folder.exists() and not folder.is_dir():
        raise fail(f"{folder} is a file; name a folder")
    if there := [name for name in CONFIG_NAMES if (folder / name).exists()]:
        raise fail(f"{folder / there[0]} is there already; this folder is a project")
    if taken := [str(path) for path in files if path.exists()]:
        raise fail(f"{', '.join(taken)} would be overwritten; name another folder")


async def _apply(folder: Path) -> None:
    from ..execution.definitions import apply_files

    async with local_project_at(folder / _CONFIG) as project:
        await apply_files(project.workspace, [folder / "evals"])


def _print_next(folder: Path, files: list[Path]) -> None:
    say(f"A new project in {folder.resolve()}:\n")
    for path in files:
        say(f"  {path}")
    if not any(path.name == ".gitignore" for path in files):
        say("\nThere is a .gitignore already; add data/ to it.")
    here = folder.resolve() == Path.cwd()
    say("\nTry it:" + ("" if here else f"\n  cd {folder}"))
    say("  evalstudio eval run")
    say("\nThen put a call to your agent into plugins/agent.py, and what it must do into evals/.")


def demo(
    folder: Annotated[
        Path | None, typer.Argument(help="Where to put the project; a temporary folder by default.")
    ] = None,
) -> None:
    """Evaluate a bundled booking agent and find its planted bug."""
    place = folder or Path(tempfile.mkdtemp(prefix="evalstudio-demo-"))
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise fail(f"{folder} is not empty; name a new folder")
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(_TEMPLATES / "demo", place, dirs_exist_ok=True, ignore=ignore)
    count = len(list((place / "evals").iterdir()))
    say(f"A booking agent with {count} file of scenarios, in {place}\n")
    run_async(_run(place))
    say(
        "\nOne scenario fails, and rightly so: the agent says that the booking is cancelled, but its book "
        "says it is not."
        "\nWhat to try next:"
        f"\n  cd {place}"
        "\n  evalstudio run show last-failed      the transcript with the verdicts under each turn"
        "\n  evalstudio serve --open              the same in the browser"
        "\n  evalstudio eval run --repeat 5       everything five times over"
        "\n  evalstudio evaluators list           what else can be checked"
        "\n  $EDITOR booking.py                   mend _cancel(), then: evalstudio eval run --last-failed"
    )


async def _run(place: Path) -> None:
    import asyncio

    from ..execution.definitions import apply_files
    from ..execution.processor import work_off
    from ..execution.request import request_for, start_execution
    from .eval_run import conclude_and_print
    from .eval_start import find_eval

    async with local_project_at(place / _CONFIG) as project:
        workspace = project.workspace
        await apply_files(workspace, [place / "evals"])
        request = await request_for(workspace, await find_eval(workspace.store, None))
        execution = await start_execution(workspace, request)
        await conclude_and_print(project, await work_off(workspace, execution, stop=asyncio.Event()))
