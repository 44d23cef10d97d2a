"""``evalstudio status``: the project at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from .db import place_of
from .executions import counts_text
from .options import JsonOption
from .output import near, plain, print_json, say
from .project import LocalProject, Project, RemoteProject, on_project
from .runs import when

if TYPE_CHECKING:
    from ..storage.contract import Records


@on_project
async def status(project: Project, as_json: JsonOption = False) -> None:
    """Show the project at a glance."""
    status = await (_here(project) if isinstance(project, LocalProject) else _there(cast(Any, project)))
    status |= await _contents(project.records)
    print_json(status) if as_json else _print(status)


async def _here(project: LocalProject) -> dict[str, Any]:
    from ..version import __version__

    workspace = project.workspace
    config, llm = workspace.config, workspace.config.llm_settings
    return {
        "version": __version__,
        "name": config.name or workspace.folder.name,
        "config": str(project.config_path.resolve()),
        "storage": {"type": config.storage.type, "place": place_of(config.storage, workspace.folder)},
        "plugins": [{"name": name} for name in config.all_plugins],
        "models": None if llm is None else {"provider": llm.provider, **plain(llm.models)},
        "refused": [plain(one) for one in await project.definitions.refused_without_plugins()],
    }


async def _there(project: RemoteProject) -> dict[str, Any]:
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
        "refused": await client.call("GET", "/api/definitions/refused"),
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
    models, last = status["models"], status["lastExecution"]
    roles = ", ".join(f"{role} {model}" for role, model in dict[str, Any](models or {}).items() if model)
    rows = {
        "Project": f"{status['name']} ({status.get('server') or near(status['config'])})",
        "Storage": f"{status['storage']['type']}, {near(status['storage']['place'])}",
        "Definitions": definitions,
        "Plugins": ", ".join(plugin["name"] for plugin in status["plugins"]) or "none",
        "Models": "none (llmSettings)" if models is None else roles,
        "Last execution": "none yet" if last is None else _last(Execution.model_validate(last)),
    }
    for name, text in rows.items():
        say(f"{name + ':':<16}{text}")
    _print_refused(status["refused"])


def _print_refused(refused: list[dict[str, Any]]) -> None:
    """What must be changed before it can run again."""
    if not refused:
        return
    say(f"Refused:        {len(refused)} of them cannot be run as they are; change them and save again:")
    for problem in (problem for one in refused for problem in one["problems"]):
        say(f"  {problem}")


def _last(execution: Any) -> str:
    started = when(execution.started_at or execution.created_at)
    name = execution.eval_name or "a single try"
    return f"{name}, {started} UTC, {execution.status}: {counts_text(execution)} ({execution.id})"
