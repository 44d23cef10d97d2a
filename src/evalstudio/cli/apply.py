"""``evalstudio apply``: make the project match files of definitions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .loops import run_async
from .opening import YesOption, confirm, workspace_at
from .options import ConfigOption, JsonOption
from .output import print_json, printable

if TYPE_CHECKING:
    from ..project.planning import Change

_COLOURS = {"+": "green", "~": "yellow", "-": "red"}
_DONE = {"+": "added", "~": "changed", "-": "deleted"}
_PLANNED = {"+": "to add", "~": "to change", "-": "to delete"}


def apply(
    paths: Annotated[list[Path], typer.Argument(help="YAML or JSON files, or folders of them.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete the definitions that are not in the files.")
    ] = False,
    yes: YesOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the project match files of definitions.

    All of them are checked before anything is changed, and the plan is shown: + new, ~ changed, - deleted.
    """

    async def work() -> None:
        from ..execution.applying import carry_out, stock_of
        from ..project.planning import plan_changes, read_files

        documents = read_files(paths)
        async with workspace_at(config) as workspace:
            stock = await stock_of(workspace.store)
            changes = plan_changes(stock, documents, workspace.surroundings(), prune=prune)
            if not as_json:
                print_plan(changes)
            gone = sum(1 for change in changes if change.sign == "-")
            if gone and not dry_run:
                confirm(f"Delete {gone} definition{'s' if gone > 1 else ''}?", yes=yes)
            if not dry_run:
                await carry_out(workspace, stock, changes)
        print_outcome(changes, applied=not dry_run, as_json=as_json)

    run_async(work())


def print_changes(changes: Sequence[Change], *, applied: bool, as_json: bool) -> None:
    """What changed, or would, and how much that is."""
    if not as_json:
        print_plan(changes)
    print_outcome(changes, applied=applied, as_json=as_json)


def print_plan(changes: Sequence[Change]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for change in changes:
        console.print(Text(printable(str(change)), _COLOURS[change.sign]))


def print_outcome(changes: Sequence[Change], *, applied: bool, as_json: bool) -> None:
    if as_json:
        print_json({"applied": applied, "changes": [change.to_json() for change in changes]})
    elif not changes:
        typer.echo("Nothing to change.")
    else:
        words = _DONE if applied else _PLANNED
        counts = {sign: sum(1 for change in changes if change.sign == sign) for sign in words}
        told = ", ".join(f"{count} {words[sign]}" for sign, count in counts.items() if count)
        typer.echo(f"{told}." if applied else f"{told}; nothing was changed.")
