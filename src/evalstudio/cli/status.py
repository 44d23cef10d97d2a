"""``evalstudio status``: the project at a glance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .db import place_of
from .executions import counts_text
from .output import print_json, printable
from .project import (
    ConfigOption,
    JsonOption,
    RemoteProject,
    client_at,
    config_at_hand,
    run_async,
    server_url,
    workspace_at,
)
from .runs import plain, when

if TYPE_CHECKING:
    from ..execution.workspace import Workspace
    from ..storage.contract import Records


def status(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show the project at a glance."""
    url = server_url(config)

    async def work() -> dict[str, Any]:
        if url is not None:
            async with client_at(url) as client:
                return await _status_there(RemoteProject(client))
        path = config_at_hand(config)
        async with workspace_at(path) as workspace:
            return await _status_here(workspace, str(path.resolve()))

    status = run_async(work())
    if as_json:
        print_json(status)
    else:
        _print(status)


async def _status_here(workspace: Workspace, path: str) -> dict[str, Any]:
    from ..version import __version__

    config, llm = workspace.config, workspace.config.llm_settings
    return {
        "version": __version__,
        "name": config.name or workspace.folder.name,
        "config": path,
        "storage": {"type": config.storage.type, "place": place_of(config.storage, workspace.folder)},
        "plugins": [plugin.to_json() for plugin in workspace.registry.plugins],
        "models": None if llm is None else {"provider": llm.provider, **plain(llm.models)},
        **await _contents(workspace.store),
    }


async def _status_there(project: RemoteProject) -> dict[str, Any]:
    client = project.client
    about, models = await client.status(), await client.call("GET", "/api/llm/providers")
    provider = next((one["name"] for one in models["items"] if one["isDefault"]), None)
    return {
        "version": about["version"],
        "name": about["name"] or "unnamed",
        "server": client.url,
        "storage": {"type": about["storage"], "place": "on the server"},
        "plugins": await client.call("GET", "/api/plugins"),
        "models": None if models["models"] is None else {"provider": provider, **models["models"]},
        **await _contents(project.records),
    }


async def _contents(records: Records) -> dict[str, Any]:
    """How much is defined, and what ran last."""
    from ..execution.definitions import load_project_state
    from ..project.documents import PLURALS

    state = await load_project_state(records)
    last = (await records.executions(limit=1)).items
    return {
        "definitions": {plural: len(state.of_kind(kind)) for plural, kind in PLURALS.items()},
        "lastExecution": plain(last[0]) if last else None,
    }


def _print(status: dict[str, Any]) -> None:
    from ..project.entities import Execution

    counts = status["definitions"].items()
    definitions = ", ".join(
        f"{count} {name.removesuffix('s') if count == 1 else name}" for name, count in counts
    )
    plugins = ", ".join(plugin["name"] for plugin in status["plugins"]) or "none"
    models = status["models"]
    model_text = (
        "none (llmSettings)" if models is None else ", ".join(f"{k} {v}" for k, v in models.items() if v)
    )
    last = status["lastExecution"]
    rows = {
        "Project": f"{status['name']} ({status.get('server') or _near(status['config'])})",
        "Storage": f"{status['storage']['type']}, {_near(status['storage']['place'])}",
        "Definitions": definitions,
        "Plugins": plugins,
        "Models": model_text,
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
