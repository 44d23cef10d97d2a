"""``evalstudio schema``: JSON Schemas of the files a person writes, for editors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import ConfigOption, JsonOption, open_registry
from .output import fail, print_json

if TYPE_CHECKING:
    from pathlib import Path

_KINDS = ("definitions", "scenario", "persona", "connector", "eval", "config", "scoring")


def schema(
    kind: Annotated[str, typer.Argument(help=f"One of: {', '.join(_KINDS)}.")],
    config: ConfigOption = None,
    as_json: JsonOption = True,
) -> None:
    """Print a JSON Schema for your editor.

    The evaluators and connectors of the project's plugins are in it.
    """
    print_json(_schema(kind, config))


def _schema(kind: str, config: Path | None) -> dict[str, Any]:
    if kind == "scoring":
        from ..scoring.plan import ScoringPlan

        return ScoringPlan.model_json_schema()
    if kind == "config":
        from ..project.config import ProjectConfig

        return ProjectConfig.model_json_schema()
    from ..configs import closest
    from ..project.documents import KINDS
    from ..project.editor_schemas import definitions_schema, schema_of

    if kind == "definitions":
        return definitions_schema(open_registry(config))
    for known in KINDS:
        if kind == known:
            return schema_of(known, open_registry(config))
    hint = closest(kind, _KINDS) or f"; choose one of {', '.join(_KINDS)}"
    raise fail(f'there is no schema "{kind}"{hint}')
