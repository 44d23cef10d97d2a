"""``evalstudio export``: the project's definitions as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .loops import run_async
from .opening import project_at
from .options import ConfigOption, JsonOption
from .output import fail, print_json, warn

if TYPE_CHECKING:
    from ..project.documents import Document
    from ..project.writing import Format


def export(
    folder: Annotated[
        Path | None,
        typer.Argument(help="One file per definition, in folders by kind; else all on stdout."),
    ] = None,
    form: Annotated[str, typer.Option("--format", help="yaml or json.")] = "yaml",
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the definitions as files.

    Applied again, they change nothing. Secrets are masked; a mask keeps what is stored.
    """

    async def work() -> None:
        from ..execution.applying import stock_of
        from ..project.planning import export_documents
        from ..project.writing import in_one, to_text

        if form not in ("yaml", "json"):
            raise fail(f'--format is yaml or json, not "{form}"')
        async with project_at(config) as project:
            documents = export_documents(await stock_of(project.records))
        if folder is not None:
            _write(folder, documents, form, as_json)
        elif as_json or form == "json":
            print_json(in_one(documents))
        else:
            typer.echo(
                to_text(in_one(documents), "yaml") if documents else "# nothing is defined yet\n", nl=False
            )

    run_async(work())


def _write(folder: Path, documents: list[Document], form: Format, as_json: bool) -> None:
    from ..project.marked_files import definition_files
    from ..project.writing import in_files

    files = {folder / path: text for path, text in in_files(documents, form).items()}
    before = set(definition_files(folder)) if folder.is_dir() else set[Path]()
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise fail(f"{error.filename}: cannot be written ({error.strerror})") from None
    others = sorted(before - set(files))
    if as_json:
        print_json({"files": [str(path) for path in files], "others": [str(path) for path in others]})
    else:
        typer.echo(f"{len(files)} definitions in {folder}")
    if others:
        listed = ", ".join(str(path) for path in others[:3]) + (", …" if len(others) > 3 else "")
        warn(f"Other files are there too, which may define the same names again: {listed}")
