"""``evalstudio apply``, ``export`` and ``schema``: the project's definitions as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.text import printable
from .options import ConfigOption, JsonOption, YesOption
from .output import fail, open_console, print_json, print_result, say, warn, write_files
from .project import LocalProject, Project, confirm, on_local_project, on_project, open_registry

if TYPE_CHECKING:
    from ..project.changes import DefinitionChange
    from ..project.documents import Document, Format

_COLOURS = {"+": "green", "~": "yellow", "-": "red"}
_DONE = {"+": "added", "~": "changed", "-": "deleted"}
_PLANNED = {"+": "to add", "~": "to change", "-": "to delete"}


@on_local_project
async def apply(
    project: LocalProject,
    paths: Annotated[list[Path], typer.Argument(help="YAML or JSON files, or folders of them.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete the definitions that are not in the files.")
    ] = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make the project match files of definitions.

    All of them are checked before anything is changed, and the plan is shown: + new, ~ changed, - deleted.
    """
    from ..project.changes import read_files

    def review(changes: Sequence[DefinitionChange]) -> None:
        if not as_json:
            print_plan(changes)
        gone = sum(1 for change in changes if change.sign == "-")
        if gone and not dry_run:
            confirm(f"Delete {gone} definition{'s' if gone > 1 else ''}?", yes=yes)

    documents = read_files(paths)
    changes = await project.definitions.apply(documents, prune=prune, dry_run=dry_run, review=review)
    print_outcome(changes, applied=not dry_run, as_json=as_json)


def print_plan(changes: Sequence[DefinitionChange]) -> None:
    from rich.text import Text

    console = open_console(highlight=False, soft_wrap=True)
    for change in changes:
        console.print(Text(printable(str(change)), _COLOURS[change.sign]))


def print_outcome(changes: Sequence[DefinitionChange], *, applied: bool, as_json: bool) -> None:
    if as_json:
        print_json({"applied": applied, "changes": [change.to_json() for change in changes]})
    elif not changes:
        say("Nothing to change.")
    else:
        words = _DONE if applied else _PLANNED
        counts = {sign: sum(1 for change in changes if change.sign == sign) for sign in words}
        summary = ", ".join(f"{count} {words[sign]}" for sign, count in counts.items() if count)
        say(f"{summary}." if applied else f"{summary}; nothing was changed.")


@on_project
async def export(
    project: Project,
    folder: Annotated[
        Path | None, typer.Argument(help="One file per definition, in folders by kind; else all on stdout.")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="yaml or json.")] = "yaml",
    as_json: JsonOption = False,
) -> None:
    """Write the definitions as files.

    Applied again, they change nothing. Secrets are masked; a mask keeps what is stored.
    """
    from ..execution.definitions import load_project_state
    from ..project.changes import export_documents
    from ..project.documents import in_one, to_text

    if form not in ("yaml", "json"):
        raise fail(f'--format is yaml or json, not "{form}"')
    documents = export_documents(await load_project_state(project.records))
    if folder is not None:
        _write(folder, documents, form, as_json)
    elif as_json or form == "json":
        print_json(in_one(documents))
    else:
        text = to_text(in_one(documents), "yaml") if documents else "# nothing is defined yet\n"
        say(text, end="")


def _write(folder: Path, documents: list[Document], form: Format, as_json: bool) -> None:
    from ..project.changes import definition_files
    from ..project.documents import in_files

    files = {folder / path: text for path, text in in_files(documents, form).items()}
    before = set(definition_files(folder)) if folder.is_dir() else set[Path]()
    write_files(files)
    others = sorted(before - set(files))
    lists = {"files": [str(path) for path in files], "others": [str(path) for path in others]}
    print_result(as_json, lists, f"{len(files)} definitions in {folder}")
    if others:
        listed = ", ".join(str(path) for path in others[:3]) + (", …" if len(others) > 3 else "")
        warn(f"Other files are there too, which may define the same names again: {listed}")


_KINDS = ("definitions", "scenario", "persona", "connector", "eval", "monitor", "config", "scoring")


def schema(
    kind: Annotated[str, typer.Argument(help=f"One of: {', '.join(_KINDS)}.")],
    config: ConfigOption = None,
    as_json: JsonOption = True,
) -> None:
    """Print a JSON Schema for your editor.

    The evaluators and connectors of the project's plugins are in it.
    """
    print_json(_schema(kind, config))


def _schema(kind: str, config: Path | None) -> dict[str, Any]:
    if kind == "scoring":
        from ..scoring.plan import ScoringPlan

        return ScoringPlan.model_json_schema()
    if kind == "config":
        from ..project.config import ProjectConfig

        return ProjectConfig.model_json_schema()
    from ..base.problems import suggestion
    from ..project.documents import KINDS
    from ..project.editor_schemas import definitions_schema, schema_of

    if kind == "definitions":
        return definitions_schema(open_registry(config))
    for known in KINDS:
        if kind == known:
            return schema_of(known, open_registry(config))
    raise fail(f'there is no schema "{kind}"; {suggestion(kind, _KINDS, "choose one of")}')
