"""What the commands of personas, scenarios, connectors and evals share: reading, showing, keeping."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from .loops import run_async
from .opening import confirm, project_at
from .output import fail, print_json, print_table, printable

if TYPE_CHECKING:
    from ..project.documents import Document, Kind
    from ..project.marked import Marked

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


def print_list(kind: Kind, config: Path | None, as_json: bool, columns: Sequence[str], row: Row) -> None:
    """All definitions of a kind, by name."""

    async def work() -> None:
        from ..execution.applying import stock_of

        async with project_at(config) as project:
            stock = await stock_of(project.records)
        found = sorted((d for d in stock.documents.values() if d.kind == kind), key=lambda d: d.key)
        if as_json:
            print_json([stored_json(kind, stock.entity(document.key)) for document in found])
        elif not found:
            typer.echo(f'No {kind}s yet. Define some in a file and run "evalstudio apply FILE".')
        else:
            print_table(f"{kind.title()}s", columns, [row(document.body) for document in found])

    run_async(work())


def print_one(kind: Kind, name: str, config: Path | None, as_json: bool) -> None:
    """One definition as the file it could be, secrets masked."""

    async def work() -> None:
        from ..execution.applying import stock_of
        from ..execution.defining import find

        async with project_at(config) as project:
            stock = await stock_of(project.records)
        document = find(stock, kind, name)
        if as_json:
            print_json(stored_json(kind, stock.entity(document.key)))
        else:
            typer.echo(yaml_of(document), nl=False)

    run_async(work())


def yaml_of(document: Document) -> str:
    from ..project.writing import to_yaml

    return printable(to_yaml({"kind": document.kind, **document.shown().body}))


def stored_json(kind: Kind, entity: Any) -> dict[str, Any]:
    """An entity as programs read it, secrets masked."""
    from ..project.secrets import masked

    body: dict[str, Any] = entity.model_dump(mode="json", by_alias=True)
    return masked(body) if kind in ("persona", "connector") else body


def keep_new(kind: Kind, given: Marked, config: Path | None, as_json: bool) -> None:
    async def work() -> None:
        async with project_at(config) as project:
            kept = await project.create(kind, given)
        print_json(stored_json(kind, kept)) if as_json else typer.echo(f'Made the {kind} "{kept.name}".')

    run_async(work())


def keep_changed(kind: Kind, name: str, given: Marked, config: Path | None, as_json: bool) -> None:
    async def work() -> None:
        if not given.data:
            raise fail("nothing to change: give --file or an option")
        async with project_at(config) as project:
            kept = await project.update(kind, name, given)
        print_json(stored_json(kind, kept)) if as_json else typer.echo(f'Changed the {kind} "{kept.name}".')

    run_async(work())


def remove(kind: Kind, name: str, config: Path | None, as_json: bool, yes: bool) -> None:
    async def work() -> None:
        from ..execution.applying import stock_of
        from ..execution.defining import find

        async with project_at(config) as project:
            found = find(await stock_of(project.records), kind, name)
            confirm(f'Delete the {kind} "{found.name}"?', yes=yes)
            deleted = await project.delete(kind, name)
        print_json({"deleted": deleted}) if as_json else typer.echo(f'Deleted the {kind} "{deleted}".')

    run_async(work())


def given_fields(kind: Kind, file: str | None, options: Mapping[str, Any]) -> Marked:
    """The fields a command was given: those of its file, with its options over them."""
    from dataclasses import replace

    from ..project.marked import Marked

    marked = Marked("", {}) if file is None else _one_document(kind, file)
    chosen = {key: item for key, item in options.items() if item is not None and item != []}
    return replace(marked, data={**marked.data, **chosen})


def _one_document(kind: Kind, file: str) -> Marked:
    from dataclasses import replace

    from ..project.marked_files import parse_marked, read_marked

    if file == "-":
        text = sys.stdin.read()
        found = parse_marked(text, "stdin", is_json=text.lstrip().startswith(("{", "[")))
    else:
        found = read_marked(Path(file))
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
    from ..project.marked_files import parse_marked

    found: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise fail(f"{option} takes key=value")
        documents = parse_marked(text, option, is_json=False)
        found[key.strip()] = documents[0].data if documents else None
    return found


def joined(items: Sequence[str] | None) -> str:
    return ", ".join(items or ()) or "-"
