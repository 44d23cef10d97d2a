"""Where reports go: files, stdout, and what a GitHub workflow shows."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from ..base.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ..reporting.reports import Format, ReportSource

# The formats of reporting.reports; importing that here would slow every command down.
FORMATS = "terminal, json, jsonl, csv, md, junit, html, github"


@dataclass(frozen=True, slots=True)
class ReportTarget:
    """A report to write: its format, and the file it goes to; without one, to stdout (or stderr)."""

    format: Format
    path: Path | None = None
    append: bool = False
    to_stderr: bool = False


def report_targets(options: Iterable[str], *, as_json: bool = False) -> list[ReportTarget]:
    """What ``--report FORMAT=PATH`` asks for; a path that cannot be written is told before anything runs."""
    from ..base.problems import InvalidInput, Problem, suggestion

    targets: list[ReportTarget] = []
    for option in options:
        kind, _, path = option.partition("=")
        known = FORMATS.split(", ")
        if kind not in known:
            hint = suggestion(kind, known, "there are")
            raise InvalidInput(Problem(f'--report "{option}": there is no format "{kind}"', hint=hint))
        if not path:
            raise InvalidInput(
                f'--report "{option}" names no file; write {kind}=PATH, or {kind}=- for stdout'
            )
        if path == "-" and as_json:
            raise InvalidInput(f'--report "{option}": with --json, stdout is taken; name a file')
        file = None if path == "-" else _writable(Path(path))
        targets.append(ReportTarget(cast("Format", kind), file))
    return targets


def _writable(path: Path) -> Path:
    from ..base.problems import InvalidInput

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        with path.open("a"):
            pass
        if is_new:
            # An empty file would look like a report of a command that is refused or stopped.
            path.unlink()
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written ({error.strerror})") from None
    return path


def in_github() -> list[ReportTarget]:
    """In a GitHub workflow: annotations beside the job, and a summary on its page."""
    targets: list[ReportTarget] = []
    if os.environ.get("GITHUB_ACTIONS") == "true":
        # The runner reads commands from both streams; stdout may hold JSON.
        targets.append(ReportTarget("github", to_stderr=True))
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        targets.append(ReportTarget("md", Path(summary), append=True))
    return targets


async def write_all(source: ReportSource, targets: Sequence[ReportTarget]) -> None:
    """Write all reports in one pass over the runs."""
    from ..base.problems import InvalidInput
    from ..reporting.reports import write_reports, writer_for

    if not targets:
        return
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(_open(target)) for target in targets]
            writers = [writer_for(target.format, file) for target, file in zip(targets, files, strict=True)]
            await write_reports(source, writers)
    except OSError as error:
        raise InvalidInput(f"{error.filename or 'a report'}: cannot be written ({error.strerror})") from None


@contextmanager
def _open(target: ReportTarget) -> Generator[IO[str]]:
    """The file of a report. One that exists is replaced when the new one is whole."""
    path = target.path
    if path is None:
        stream = sys.stderr if target.to_stderr else sys.stdout
        yield stream
        stream.flush()
        return
    in_place = target.append or (path.exists() and not path.is_file())
    written = path if in_place else path.with_name(f".{path.name}.part")
    # Half of a surrogate pair, which an agent may well send, is no text that a file can hold.
    mode = "a" if target.append else "w"
    try:
        with written.open(mode, encoding="utf-8", errors="replace", newline="\n") as file:
            yield file
        if not in_place:
            os.replace(written, path)
    finally:
        if not in_place:
            written.unlink(missing_ok=True)
