"""``evalstudio connector``: the ways to reach agents, and whether they work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from .definitions import HEADERS, FieldOption, NameArgument, definition_app, settings_of
from .output import print_json, print_table, printable
from .project import (
    ConfigOption,
    JsonOption,
    client_at,
    open_registry,
    project_at,
    run_async,
    server_url,
    with_server,
)


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
@with_server
def list_types(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the types of connectors, built in and from plugins."""
    types = _types(config)
    if as_json:
        print_json(types)
        return
    columns = ("Type", "Label", "Source", "Description")
    print_table("Connector types", columns, [[item[c.lower()] for c in columns] for item in types])


def _types(config: Path | None) -> list[Any]:
    url = server_url(config)
    if url is None:
        return open_registry(config).list_connector_types()

    async def work() -> list[Any]:
        async with client_at(url) as client:
            return await client.connector_types()

    return run_async(work())


@app.command("test")
@with_server
def call_agent(name: NameArgument, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Call the agent once. Exit code 1 when it does not answer."""

    async def work() -> bool:
        from ..execution.definitions import find, load_project_state

        async with project_at(config) as project:
            state = await load_project_state(project.records)
            check = await project.test(state.entity(find(state, "connector", name).key))
        if as_json:
            timing = {"success": check.success, "latencyMs": round(check.latency_ms, 3)}
            print_json({**timing, "response": check.response, "error": check.error})
        elif check.success:
            reply = f": {check.response}" if check.response else ""
            typer.echo(printable(f"It answers, in {check.latency_ms:,.0f} ms{reply}"))
        else:
            typer.echo(printable(f"It does not answer, after {check.latency_ms:,.0f} ms: {check.error}"))
        return check.success

    if not run_async(work()):
        raise typer.Exit(1)
