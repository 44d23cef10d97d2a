"""``evalstudio connector``: the ways to reach agents, and whether they work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import definitions as shared
from .output import print_json, print_table, printable
from .project import (
    ConfigOption,
    JsonOption,
    YesOption,
    client_at,
    open_registry,
    project_at,
    run_async,
    server_url,
    with_server,
)

app = typer.Typer(no_args_is_help=True, help="Connectors: the ways to reach agents.")

TypeOption = Annotated[str | None, typer.Option("--type", help='See "evalstudio connector types".')]
UrlOption = Annotated[str | None, typer.Option("--base-url", help="Where the agent is reached.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of its type; may be repeated."),
]


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


@app.command("list")
@with_server
def list_connectors(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the connectors."""
    from ..base.addresses import shown_address

    shared.print_list(
        "connector",
        config,
        as_json,
        ("Connector", "Type", "Address"),
        lambda body: (body["name"], body["type"], shown_address(body.get("baseUrl") or "") or "-"),
    )


@app.command("show")
@with_server
def show_connector(
    name: shared.NameArgument, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Show a connector as YAML, secrets masked."""
    shared.print_one("connector", name, config, as_json)


@app.command("test")
@with_server
def call_agent(name: shared.NameArgument, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Call the agent once. Exit code 1 when it does not answer."""

    async def work() -> bool:
        async with project_at(config) as project:
            check = await project.probe(name)
        if as_json:
            found = {"success": check.success, "latencyMs": round(check.latency_ms, 3)}
            print_json({**found, "response": check.response, "error": check.error})
        elif check.success:
            said = f": {check.response}" if check.response else ""
            typer.echo(printable(f"It answers, in {check.latency_ms:,.0f} ms{said}"))
        else:
            typer.echo(printable(f"It does not answer, after {check.latency_ms:,.0f} ms: {check.error}"))
        return check.success

    if not run_async(work()):
        raise typer.Exit(1)


@app.command("create")
@with_server
def create_connector(
    name: shared.NewNameOption = None,
    type_name: TypeOption = None,
    base_url: UrlOption = None,
    header: shared.HeaderOption = None,
    setting: SetOption = None,
    file: shared.FileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a connector, from options or a file."""
    fields = _fields(name, type_name, base_url, header, setting)
    shared.keep_new("connector", shared.given_fields("connector", file, fields), config, as_json)


@app.command("update")
@with_server
def update_connector(
    connector: shared.NameArgument,
    name: shared.NewNameOption = None,
    type_name: TypeOption = None,
    base_url: UrlOption = None,
    header: shared.HeaderOption = None,
    setting: SetOption = None,
    file: shared.FileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the given fields of a connector; the others stay."""
    fields = _fields(name, type_name, base_url, header, setting)
    given = shared.given_fields("connector", file, fields)
    shared.keep_changed("connector", connector, given, config, as_json)


@app.command("delete")
@with_server
def delete_connector(
    name: shared.NameArgument,
    yes: YesOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a connector that no eval uses."""
    shared.remove("connector", name, config, as_json, yes)


def _fields(
    name: str | None,
    type_name: str | None,
    base_url: str | None,
    header: list[str] | None,
    setting: list[str] | None,
) -> dict[str, object]:
    return {
        "name": name,
        "type": type_name,
        "baseUrl": base_url,
        "headers": shared.headers_of(header),
        "config": shared.settings_of(setting, "--set") or None,
    }
