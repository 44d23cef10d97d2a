"""``evalstudio schema``: JSON Schemas of the files a person writes, for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from .output import fail, print_json

_KINDS = ("scoring", "config")


def schema(kind: Annotated[str, typer.Argument(help=f"One of: {', '.join(_KINDS)}.")]) -> None:
    """Print the JSON Schema of a kind of file."""
    if kind == "scoring":
        from ..scoring.plan import ScoringPlan

        print_json(ScoringPlan.model_json_schema())
    elif kind == "config":
        from ..project.config import ProjectConfig

        print_json(ProjectConfig.model_json_schema())
    else:
        raise fail(f'there is no schema "{kind}"; choose one of {", ".join(_KINDS)}')
