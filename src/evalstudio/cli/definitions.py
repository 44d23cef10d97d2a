"""What the commands of personas, scenarios, connectors and evals share: reading, showing, keeping."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from .output import fail, print_json, print_table, printable
from .project import confirm, project_at, run_async

if TYPE_CHECKING:
    from ..base.located import Located
    from ..project.documents import DefinitionKind, Document

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Its name or id.", show_default=False)]
FileOption = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="PATH", help="YAML or JSON with its fields; - reads stdin."),
]
NewNameOption = Annotated[str | None, typer.Option("--name", help="Its name.")]
HeaderOption = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="'NAME: VALUE'", help="Sent to the agent; may be repeated."),
]

Row = Callable[[Mapping[str, Any]], Sequence[str]]
_NOT_FIELDS = ("kind", "$schema")


def print_list(
    kind: DefinitionKind, config: Path | None, as_json: bool, columns: Sequence[str], row: Row
) -> None:
    """All definitions of a kind, by name."""

    async def work() -> None:
        from ..execution.definitions import load_project_state

        async with project_at(config) as project:
            project_state = await load_project_state(project.records)
        found = sorted((d for d in project_state.documents.values() if d.kind == kind), key=lambda d: d.key)
        if as_json:
            print_json([stored_json(kind, project_state.entity(document.key)) for document in found])
        elif not found:
            typer.echo(f'No {kind}s yet. Define some in a file and run "evalstudio apply FILE".')
        else:
            print_table(f"{kind.title()}s", columns, [row(document.body) for document in found])

    run_async(work())


def print_one(kind: DefinitionKind, name: str, config: Path | None, as_json: bool) -> None:
    """One definition as the file it could be, secrets masked."""

    async def work() -> None:
        from ..execution.definitions import find, load_project_state

        async with project_at(config) as project:
            project_state = await load_project_state(project.records)
        document = find(project_state, kind, name)
        if as_json:
            print_json(stored_json(kind, project_state.entity(document.key)))
        else:
            typer.echo(yaml_of(document), nl=False)

    run_async(work())


def yaml_of(document: Document) -> str:
    from ..project.documents import to_yaml

    return printable(to_yaml({"kind": document.kind, **document.shown().body}))


def stored_json(kind: DefinitionKind, entity: Any) -> dict[str, Any]:
    """An entity as programs read it, secrets masked."""
    from ..project.secrets import masked

    body: dict[str, Any] = entity.model_dump(mode="json", by_alias=True)
    return masked(body) if kind in ("persona", "connector") else body


def keep_new(kind: DefinitionKind, given: Located, config: Path | None, as_json: bool) -> None:
    async def work() -> None:
        async with project_at(config) as project:
            kept = await project.create(kind, given)
        print_json(stored_json(kind, kept)) if as_json else typer.echo(f'Made the {kind} "{kept.name}".')

    run_async(work())


def keep_changed(kind: DefinitionKind, name: str, given: Located, config: Path | None, as_json: bool) -> None:
    async def work() -> None:
        if not given.data:
            raise fail("nothing to change: give --file or an option")
        async with project_at(config) as project:
            kept = await project.update(kind, name, given)
        print_json(stored_json(kind, kept)) if as_json else typer.echo(f'Changed the {kind} "{kept.name}".')

    run_async(work())


def remove(kind: DefinitionKind, name: str, config: Path | None, as_json: bool, yes: bool) -> None:
    async def work() -> None:
        from ..execution.definitions import find, load_project_state

        async with project_at(config) as project:
            found = find(await load_project_state(project.records), kind, name)
            confirm(f'Delete the {kind} "{found.name}"?', yes=yes)
            deleted = await project.delete(kind, name)
        print_json({"deleted": deleted}) if as_json else typer.echo(f'Deleted the {kind} "{deleted}".')

    run_async(work())


def given_fields(kind: DefinitionKind, file: str | None, options: Mapping[str, Any]) -> Located:
    """The fields a command was given: those of its file, with its options over them."""
    from dataclasses import replace

    from ..base.located import Located

    located = Located("", {}) if file is None else _one_document(kind, file)
    chosen = {key: item for key, item in options.items() if item is not None and item != []}
    return replace(located, data={**located.data, **chosen})


def _one_document(kind: DefinitionKind, file: str) -> Located:
    from dataclasses import replace

    from ..base.files import parse_text, read_file

    if file == "-":
        text = sys.stdin.read()
        found = parse_text(text, "stdin", is_json=text.lstrip().startswith(("{", "[")))
    else:
        found = read_file(Path(file))
    data: Any = found[0].data if len(found) == 1 else None
    if not isinstance(data, dict):
        raise fail(f"{'stdin' if file == '-' else file}: expected the fields of one {kind}")
    fields = cast(dict[str, Any], data)
    if fields.get("kind", kind) != kind:
        raise fail(f"{found[0].at(('kind',))}: this is of kind {fields['kind']}, not {kind}")
    return replace(found[0], data={key: item for key, item in fields.items() if key not in _NOT_FIELDS})


def headers_of(pairs: Sequence[str] | None) -> dict[str, str] | None:
    """``Name: value`` as a header."""
    if not pairs:
        return None
    split = [pair.partition(":") for pair in pairs]
    for name, colon, _ in split:
        if not colon or not name.strip():
            raise fail("--header takes 'Name: value'")
    return {name.strip(): value.strip() for name, _, value in split}


def settings_of(pairs: Sequence[str] | None, option: str) -> dict[str, Any]:
    """``key=value`` pairs, values read as YAML: numbers, true, lists, text."""
    from ..base.files import parse_text

    found: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise fail(f"{option} takes key=value")
        documents = parse_text(text, option, is_json=False)
        found[key.strip()] = documents[0].data if documents else None
    return found


def joined(items: Sequence[str] | None) -> str:
    return ", ".join(items or ()) or "-"
