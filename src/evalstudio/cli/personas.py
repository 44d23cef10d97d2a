"""``evalstudio persona``: who the simulated users are."""

from __future__ import annotations

from typing import Annotated

import typer

from . import definitions as shared
from .project import ConfigOption, JsonOption, YesOption, with_server

app = typer.Typer(no_args_is_help=True, help="Personas: who the simulated users are.")

DescriptionOption = Annotated[str | None, typer.Option(help="Who this is, in a few words.")]
PromptOption = Annotated[str | None, typer.Option("--system-prompt", help="How this person speaks.")]
KnowsOption = Annotated[str | None, typer.Option(help="What only this person knows.")]
WantsOption = Annotated[str | None, typer.Option(help="What this person is after.")]


@app.command("list")
@with_server
def list_personas(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the personas."""
    shared.print_list(
        "persona",
        config,
        as_json,
        ("Persona", "Description"),
        lambda body: (body["name"], body.get("description") or body.get("systemPrompt") or "-"),
    )


@app.command("show")
@with_server
def show_persona(name: shared.NameArgument, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show a persona as YAML, secrets masked."""
    shared.print_one("persona", name, config, as_json)


@app.command("create")
@with_server
def create_persona(
    name: shared.NewNameOption = None,
    description: DescriptionOption = None,
    system_prompt: PromptOption = None,
    knows: KnowsOption = None,
    wants: WantsOption = None,
    header: shared.HeaderOption = None,
    file: shared.FileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a persona, from options or a file."""
    fields = _fields(name, description, system_prompt, knows, wants, header)
    shared.keep_new("persona", shared.given_fields("persona", file, fields), config, as_json)


@app.command("update")
@with_server
def update_persona(
    persona: shared.NameArgument,
    name: shared.NewNameOption = None,
    description: DescriptionOption = None,
    system_prompt: PromptOption = None,
    knows: KnowsOption = None,
    wants: WantsOption = None,
    header: shared.HeaderOption = None,
    file: shared.FileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the given fields of a persona; the others stay."""
    fields = _fields(name, description, system_prompt, knows, wants, header)
    shared.keep_changed("persona", persona, shared.given_fields("persona", file, fields), config, as_json)


@app.command("delete")
@with_server
def delete_persona(
    name: shared.NameArgument,
    yes: YesOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a persona that no scenario uses."""
    shared.remove("persona", name, config, as_json, yes)


def _fields(
    name: str | None,
    description: str | None,
    system_prompt: str | None,
    knows: str | None,
    wants: str | None,
    header: list[str] | None,
) -> dict[str, object]:
    return {
        "name": name,
        "description": description,
        "systemPrompt": system_prompt,
        "knows": knows,
        "wants": wants,
        "headers": shared.headers_of(header),
    }
