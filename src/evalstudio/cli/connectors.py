"""``evalstudio connector``: the ways to reach agents, and whether they work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..base.text import milliseconds
from .definitions import HEADERS, FieldOption, NameArgument, definition_app, settings_of
from .options import ConfigOption, JsonOption, ServerOption
from .output import print_json, print_result, print_table
from .project import Project, client_at, on_project, open_registry, run_async


def _row(body: Mapping[str, Any]) -> tuple[str, ...]:
    from ..base.addresses import shown_address

    return body["name"], body["type"], shown_address(body.get("baseUrl") or "") or "-"


app = definition_app(
    "connector",
    "a connector",
    help="Connectors: the ways to reach agents.",
    deleting="Delete a connector that no eval uses.",
    columns=("Connector", "Type", "Address"),
    row=_row,
    options=[
        FieldOption("--type", "type", 'See "evalstudio connector types".'),
        FieldOption("--base-url", "baseUrl", "Where the agent is reached."),
        HEADERS,
        FieldOption(
            "--set",
            "config",
            "A setting of its type; may be repeated.",
            list[str],
            "KEY=VALUE",
            lambda pairs: settings_of(pairs, "--set"),
        ),
    ],
)


@app.command("types")
def list_types(config: ConfigOption = None, as_json: JsonOption = False, server: ServerOption = None) -> None:
    """List the types of connectors, built in and from plugins."""
    types = run_async(_types_on(server, config)) if server else open_registry(config).list_connector_types()
    if as_json:
        print_json(types)
        return
    columns = ("Type", "Label", "Source", "Description")
    print_table("Connector types", columns, [[item[c.lower()] for c in columns] for item in types])


async def _types_on(server: str, config: Path | None) -> list[Any]:
    async with client_at(server, config) as client:
        return await client.connector_types()


@app.command("test")
@on_project
async def call_agent(project: Project, name: NameArgument, as_json: JsonOption = False) -> int:
    """Call the agent once. Exit code 1 when it does not answer."""
    from ..execution.definitions import find, load_project_state

    state = await load_project_state(project.records)
    check = await project.test(state.entity(find(state, "connector", name).key))
    timing = {"success": check.success, "latencyMs": round(check.latency_ms, 3)}
    if check.success:
        text = f"It answers, in {milliseconds(check.latency_ms)}" + (
            f": {check.response}" if check.response else ""
        )
    else:
        text = f"It does not answer, after {milliseconds(check.latency_ms)}: {check.error}"
    print_result(as_json, {**timing, "response": check.response, "error": check.error}, text)
    return 0 if check.success else 1
