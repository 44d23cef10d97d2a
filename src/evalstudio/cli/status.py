"""``evalstudio status``: the project at a glance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .db import place_of
from .executions import counts_text
from .loops import run_async
from .opening import config_at_hand, project_at
from .options import ConfigOption, JsonOption
from .output import print_json, printable
from .runs import plain, when

if TYPE_CHECKING:
    from ..execution.workspace import Workspace


def status(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show the project at a glance."""
    path = config_at_hand(config)
    place = str(path.resolve())

    async def work() -> None:
        async with project_at(path) as workspace:
            found = await _status(workspace, place)
        if as_json:
            print_json(found)
        else:
            _print(found)

    run_async(work())


async def _status(workspace: Workspace, path: str) -> dict[str, Any]:
    from ..execution.applying import stock_of
    from ..project.documents import KINDS, PLURALS
    from ..version import __version__

    stock = await stock_of(workspace)
    config = workspace.config
    last = (await workspace.store.executions(limit=1)).items
    llm = config.llm_settings
    return {
        "version": __version__,
        "name": config.name or workspace.folder.name,
        "config": path,
        "storage": {"type": config.storage.type, "place": place_of(config.storage, workspace.folder)},
        "definitions": {
            plural: len(stock.of_kind(kind)) for plural, kind in zip(PLURALS, KINDS, strict=True)
        },
        "plugins": [plugin.to_json() for plugin in workspace.registry.plugins],
        "models": None if llm is None else {"provider": llm.provider, **plain(llm.models)},
        "lastExecution": plain(last[0]) if last else None,
    }


def _print(found: dict[str, Any]) -> None:
    from ..project.entities import Execution

    counts = found["definitions"].items()
    definitions = ", ".join(
        f"{count} {name.removesuffix('s') if count == 1 else name}" for name, count in counts
    )
    plugins = ", ".join(plugin["name"] for plugin in found["plugins"]) or "none"
    models = found["models"]
    told = "none (llmSettings)" if models is None else ", ".join(f"{k} {v}" for k, v in models.items() if v)
    last = found["lastExecution"]
    rows = {
        "Project": f"{found['name']} ({_near(found['config'])})",
        "Storage": f"{found['storage']['type']}, {_near(found['storage']['place'])}",
        "Definitions": definitions,
        "Plugins": plugins,
        "Models": told,
        "Last execution": "none yet" if last is None else _last(Execution.model_validate(last)),
    }
    for name, text in rows.items():
        typer.echo(f"{name + ':':<16}{printable(text)}")


def _last(execution: Any) -> str:
    started = when(execution.started_at or execution.created_at)
    name = execution.eval_name or "a single try"
    return f"{name}, {started} UTC, {execution.status}: {counts_text(execution)} ({execution.id})"


def _near(path: str) -> str:
    """A path as it is seen from here, where that is shorter."""
    try:
        near = str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path
    return near
