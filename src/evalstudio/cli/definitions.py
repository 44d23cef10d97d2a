"""The commands all kinds of definitions have alike: list, show, create, update, delete."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..base.lazy_dataclass import dataclass
from .options import JsonOption, YesOption
from .output import fail, print_json, print_result, print_table, say, warn
from .project import Project, confirm, on_project, parameter, parameters_of, with_parameters

if TYPE_CHECKING:
    from ..base.located import Located
    from ..project.documents import AnyStored, DefinitionKind

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Its name or id.", show_default=False)]
FileOption = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="PATH", help="YAML or JSON with its fields; - reads stdin."),
]

Row = Callable[[Mapping[str, Any]], Sequence[str]]


@dataclass(frozen=True, slots=True)
class FieldOption:
    """An option of ``create`` and ``update`` that sets one field; ``read`` turns its text into a value."""

    flag: str
    field: str
    help: str
    type: Any = str
    metavar: str | None = None
    read: Callable[[Any], Any] = lambda typed: typed

    @property
    def name(self) -> str:
        return self.flag.strip("-").replace("-", "_")

    @property
    def annotation(self) -> Any:
        return Annotated[self.type | None, typer.Option(self.flag, metavar=self.metavar, help=self.help)]


def definition_app(
    kind: DefinitionKind,
    noun: str,
    *,
    help: str,
    deleting: str,
    columns: Sequence[str],
    row: Row,
    options: Sequence[FieldOption],
) -> typer.Typer:
    """The commands of one kind; ``noun`` has its article, ``row`` makes a line of the list."""
    app = typer.Typer(no_args_is_help=True, help=help)
    fields_of = [FieldOption("--name", "name", "Its name."), *options]
    masked = ", secrets masked" if kind in ("persona", "connector", "monitor") else ""

    @app.command("list", help=f"List the {kind}s.")
    @on_project
    async def list_all(project: Project, as_json: JsonOption = False) -> None:
        await _print_list(project, kind, columns, row, as_json)

    @app.command("show", help=f"Show {noun} as YAML{masked}.")
    @on_project
    async def show(project: Project, target: NameArgument, as_json: JsonOption = False) -> None:
        await _print_one(project, kind, target, as_json)

    @app.command("create", help=f"Make {noun}, from options or a file.")
    @_with_fields(fields_of)
    @on_project
    async def create(
        project: Project, fields: dict[str, Any], file: FileOption = None, as_json: JsonOption = False
    ) -> None:
        await _save(project, kind, None, _read_fields(kind, file, fields), as_json)

    @app.command("update", help=f"Change the given fields of {noun}; the others stay.")
    @_with_fields(fields_of)
    @on_project
    async def update(
        project: Project,
        target: NameArgument,
        fields: dict[str, Any],
        file: FileOption = None,
        as_json: JsonOption = False,
    ) -> None:
        await _save(project, kind, target, _read_fields(kind, file, fields), as_json)

    @app.command("delete", help=deleting)
    @on_project
    async def delete(
        project: Project, target: NameArgument, yes: YesOption = False, as_json: JsonOption = False
    ) -> None:
        await _delete(project, kind, target, as_json, yes)

    _ = list_all, show, create, update, delete
    return app


def _with_fields(options: Sequence[FieldOption]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command with one option for each field, in place of its parameter ``fields``."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(**values: Any) -> None:
            typed = {option: values.pop(option.name) for option in options}
            fields = {one.field: one.read(value) for one, value in typed.items() if value not in (None, [])}
            command(fields=fields, **values)

        known = parameters_of(command)
        place = [one.name for one in known].index("fields")
        added = [parameter(option.name, option.annotation) for option in options]
        return with_parameters(call, [*known[:place], *added, *known[place + 1 :]])

    return decorate


async def _print_list(
    project: Project, kind: DefinitionKind, columns: Sequence[str], row: Row, as_json: bool
) -> None:
    from ..execution.definitions import load_project_state

    state = await load_project_state(project.records)
    documents = sorted((d for d in state.documents.values() if d.kind == kind), key=lambda d: d.key)
    if as_json:
        print_json([_json(state.entity(document.key)) for document in documents])
    elif not documents:
        say(f'No {kind}s yet. Define some in a file and run "evalstudio apply FILE".')
    else:
        print_table(f"{kind.title()}s", columns, [row(document.body) for document in documents])


async def _print_one(project: Project, kind: DefinitionKind, name: str, as_json: bool) -> None:
    """One definition as the file it could be, secrets masked."""
    from ..execution.definitions import find, load_project_state
    from ..project.yaml_text import to_yaml

    state = await load_project_state(project.records)
    document = find(state, kind, name)
    if as_json:
        print_json(_json(state.entity(document.key)))
    else:
        say(to_yaml({"kind": kind, **document.shown().body}), end="")


async def _save(
    project: Project, kind: DefinitionKind, name: str | None, fields: Located, as_json: bool
) -> None:
    """Make a definition, or change the one of this name."""
    from ..execution.definitions import find, load_project_state, read_definition, with_fields

    if name is not None and not fields.data:
        raise fail("nothing to change: give --file or an option")
    state = await load_project_state(project.records)
    if name is None:
        saved = await project.create(kind, read_definition(state, kind, fields), fields)
    else:
        document = find(state, kind, name)
        definition = read_definition(state, kind, with_fields(document, fields))
        saved = await project.update(kind, state.entity(document.key), definition, fields)
        _warn_of_dropped_secrets(definition, saved)
    verb = "Made" if name is None else "Changed"
    print_result(as_json, _json(saved), f'{verb} the {kind} "{saved.name}".')


def _warn_of_dropped_secrets(sent: AnyStored, saved: AnyStored) -> None:
    from ..base.problems import path_text
    from ..project.secrets import MASK, secrets_in

    left = dict(secrets_in(saved.model_dump(by_alias=True)))
    sent_secrets = secrets_in(sent.model_dump(by_alias=True))
    if dropped := [path_text(place) for place, value in sent_secrets if value == MASK and place not in left]:
        warn(f"Secrets of the old address were dropped; give them again: {', '.join(dropped)}")


async def _delete(project: Project, kind: DefinitionKind, name: str, as_json: bool, yes: bool) -> None:
    from ..execution.definitions import find, load_project_state

    state = await load_project_state(project.records)
    document = find(state, kind, name)
    confirm(f'Delete the {kind} "{document.name}"?', yes=yes)
    await project.delete(kind, state.entity(document.key))
    print_result(as_json, {"deleted": document.name}, f'Deleted the {kind} "{document.name}".')


def _json(entity: AnyStored) -> dict[str, Any]:
    """An entity as programs read it, secrets masked."""
    from ..execution.definitions import masked_entity

    return masked_entity(entity).model_dump(mode="json", by_alias=True)


def _read_fields(kind: DefinitionKind, file: str | None, options: Mapping[str, Any]) -> Located:
    """The fields a command was given: those of its file, with its options over them."""
    from ..base.files import parse_text, read_file, single_data
    from ..base.located import Located

    if file is None:
        return Located("", dict(options))
    if file == "-":
        text = sys.stdin.read()
        documents = parse_text(text, "stdin", is_json=text.lstrip().startswith(("{", "[")))
    else:
        documents = read_file(Path(file))
    data: Any = single_data(documents)
    if not isinstance(data, dict):
        raise fail(f"{'stdin' if file == '-' else file}: expected the fields of one {kind}")
    fields = {key: item for key, item in cast(dict[str, Any], data).items() if key != "$schema"}
    if fields.pop("kind", kind) != kind:
        raise fail(f"{documents[0].at(('kind',))}: this is of kind {data['kind']}, not {kind}")
    return replace(documents[0], data={**fields, **options})


def _headers(pairs: Sequence[str]) -> dict[str, str]:
    split = [pair.partition(":") for pair in pairs]
    for name, colon, _ in split:
        if not colon or not name.strip():
            raise fail("--header takes 'Name: value'")
    return {name.strip(): value.strip() for name, _, value in split}


HEADERS = FieldOption(
    "--header", "headers", "Sent to the agent; may be repeated.", list[str], "'NAME: VALUE'", _headers
)


def settings_of(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """``key=value`` pairs, values read as YAML: numbers, true, lists, text."""
    from ..base.files import parse_text

    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise fail(f"{option} takes key=value")
        documents = parse_text(text, option, is_json=False)
        settings[key.strip()] = documents[0].data if documents else None
    return settings


def joined(items: Sequence[str] | None) -> str:
    return ", ".join(items or ()) or "-"
