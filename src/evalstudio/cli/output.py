"""What the commands print and write: tables for people, JSON for programs, files."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from ..base.text import printable
from .exit_codes import WRONG_INPUT
from .simple_tables import simple_table

if TYPE_CHECKING:
    from rich.console import Console

# In a narrow terminal the columns in the middle are kept narrow, for the sake of the last.
_NARROW = 10
_LONGEST_WORD = 20
# Control characters that JSON may hold as they are, and those that turn the direction of a line.
_STEERING = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def say(text: str = "", *, end: str = "\n") -> None:
    """Print a text for people, without what would steer their terminal."""
    typer.echo(printable(text) + end, nl=False)


_json_output: BinaryIO | None = None


def reserve_stdout_for_json() -> None:
    """What agents, evaluators and plugins print goes to stderr; stdout has the JSON and nothing else."""
    global _json_output
    from ..base.console import reserved_stdout

    _json_output = reserved_stdout()


_collected: list[Any] | None = None


@contextmanager
def collected_json() -> Generator[None]:
    """What is printed as JSON inside becomes one list, so that stdout stays one document."""
    global _collected
    _collected = values = []
    try:
        yield
    finally:
        _collected = None
        if values:
            print_json(values)


def print_json(value: Any) -> None:
    """JSON as it is: never wrapped, never coloured."""
    import orjson

    if _collected is not None:
        _collected.append(value)
        return
    text = escaped_json(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str))
    if _json_output is None:
        typer.echo(text)
    else:
        _json_output.write(text.encode() + b"\n")
        _json_output.flush()


def escaped_json(text: bytes) -> str:
    """The same JSON with what may steer a terminal written as escapes."""
    return _STEERING.sub(lambda character: f"\\u{ord(character[0]):04x}", text.decode())


def plain(entity: Any) -> dict[str, Any]:
    """An entity as JSON holds it."""
    return entity.model_dump(mode="json", by_alias=True, exclude_none=True)


def print_result(as_json: bool, value: Any, text: str) -> None:
    """The value for programs, or the text for people."""
    print_json(value) if as_json else say(text)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table that fits the terminal. The first column is kept whole, the last is the widest to wrap in."""
    cells = list(rows)
    if lines := simple_table(title, columns, cells):
        for line in lines:
            typer.echo(line)
        return
    print_wrapped_table(title, columns, cells)


def print_wrapped_table(title: str, columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """The same by rich, which knows how wide every character is and where to wrap."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = open_console()
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_edge=False)
    table.padding = (0, 1, 0, 0)
    widths = [max(map(len, texts)) for texts in zip(columns, *cells, strict=True)]
    tight = sum(widths) + 2 * (len(widths) - 1) > console.width
    for place, column in enumerate(columns):
        whole = place == 0 and widths[0] <= console.width // 2
        narrow = tight and 0 < place < len(columns) - 1
        most = max(_NARROW, *(_longest_word(row[place]) for row in cells)) if narrow else None
        table.add_column(column, no_wrap=whole, overflow="fold", max_width=most)
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
    console.print()


def near(path: str) -> str:
    """A path as it is seen from here, where that is shorter."""
    return min(path, os.path.relpath(path), key=len)


def _longest_word(text: str) -> int:
    return min(max(map(len, text.split()), default=0), _LONGEST_WORD)


def write_files(files: Mapping[Path, str]) -> None:
    """Write each text to its path, in UTF-8 with the line ends it has."""
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise fail(f"{error.filename}: cannot be written ({error.strerror})") from None


def open_console(**options: Any) -> Console:
    """A console that shows styles of ours and no escapes of others, whatever is printed to it."""
    from rich.console import Console
    from rich.segment import Segment

    class PlainConsole(Console):
        def render(self, *arguments: Any, **more: Any) -> Iterator[Segment]:
            for segment in super().render(*arguments, **more):
                yield segment if segment.control else Segment(printable(segment.text), segment.style)

    return PlainConsole(**options)


class PlainFormatter(logging.Formatter):
    """Lines of the log, which may quote anything."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def warn(message: str) -> None:
    print(printable(message), file=sys.stderr)


def fail(message: str) -> typer.Exit:
    """Say what is wrong and leave with exit code 2: ``raise fail(...)``."""
    warn(f"Error: {message}")
    return typer.Exit(WRONG_INPUT)
