"""``evalstudio trust``: let the code of a folder run although somebody else may write it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import JsonOption
from .output import fail, print_result


def trust(
    folder: Annotated[
        Path | None, typer.Argument(help="The folder, with everything below it; else this one.")
    ] = None,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust it no longer.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Trust a project folder that belongs to somebody else or that everybody may change."""
    from ..base import trust as trusted

    place = (folder or Path.cwd()).resolve()
    if not place.is_dir():
        raise fail(f"{place}: is not a folder")
    trusted.distrust(place) if revoke else trusted.trust(place)
    words = "is no longer trusted" if revoke else "is trusted: opening a project there runs its plugins"
    print_result(as_json, {"folder": str(place), "trusted": not revoke}, f"{place} {words}")
