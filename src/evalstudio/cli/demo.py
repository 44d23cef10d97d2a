"""``evalstudio demo``: a small booking agent with a planted bug, evaluated in a few seconds without a key."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from .loops import run_async
from .output import fail


def demo(
    folder: Annotated[
        Path | None, typer.Argument(help="Where to put the project; a temporary folder by default.")
    ] = None,
) -> None:
    """Evaluate a bundled booking agent and find its planted bug."""
    place = folder or Path(tempfile.mkdtemp(prefix="evalstudio-demo-"))
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise fail(f"{folder} is not empty; name a new folder")
    source = Path(__file__).parent.parent / "templates" / "demo"
    shutil.copytree(source, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    typer.echo(
        f"A booking agent with {len(list((place / 'evals').iterdir()))} file of scenarios, in {place}\n"
    )
    run_async(_run(place))
    typer.echo(
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

    from ..execution.applying import apply_files
    from ..execution.session import work_off
    from ..execution.starting import order_of, start_execution
    from ..execution.workspace import open_workspace
    from .eval_run import find_eval, report
    from .projects import LocalProject

    async with open_workspace(place / "evalstudio.config.json") as workspace:
        await apply_files(workspace, [place / "evals"])
        order = await order_of(workspace, await find_eval(workspace.store, None))
        execution = await start_execution(workspace, order)
        done = await work_off(workspace, execution, stop=asyncio.Event())
        await report(LocalProject(workspace), done, agent_errors_fail=False, as_json=False)
