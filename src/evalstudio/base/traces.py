"""What went wrong in somebody's code: its type and words, the line it happened on, a traceback to keep.

Paths are told from a folder of the import path, never from the root, and secrets of the environment are
taken out: what is said here is stored, shown and sent.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

from .redaction import SECRET_HEADER, Redaction
from .text import cut

_OURS = str(Path(__file__).parents[1]) + os.sep
_PATHS = sysconfig.get_paths()
_LIBRARY = tuple(_PATHS[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_FILE = re.compile(r'^(\s*File ")([^"]+)(", line \d+)', re.MULTILINE)
_LONGEST_LINE = 300
_LONGEST_TRACE = 6_000
_LONGEST_MESSAGE = 2_000
_SHORTEST_SECRET = 8


def error_text(error: BaseException) -> str:
    """``ValueError: no such order``; an error that cannot be put into words is named by its type."""
    try:
        words = str(error)
    except Exception:
        words = "(its message cannot be read)"
    kind = "" if is_ours(error) and words else type(error).__name__
    return without_secrets(cut(": ".join(part for part in (kind, words) if part), _LONGEST_MESSAGE))


def is_ours(error: BaseException) -> bool:
    """Whether it is one of our own errors, whose words say everything."""
    return type(error).__module__.startswith("evalstudio.")


def place_of(error: BaseException) -> str:
    """``checks.py:12``: the innermost line of what the user wrote, else of what is installed."""
    frames = [(file, line) for file, line in _frames(error) if not file.startswith(_OURS)]
    written = [frame for frame in frames if not frame[0].startswith(_LIBRARY) and not _is_internal(frame[0])]
    for file, line in [*frames, *written][-1:]:
        return f"{relative(file)}:{line}"
    return ""


def described(error: BaseException, plugin: str = "") -> str:
    """The error in words, with where it happened and the plugin that it happened in."""
    cause = error.__cause__ if is_ours(error) and error.__cause__ is not None else error
    origin = ", ".join(part for part in (place_of(cause), f"plugin {plugin}" if plugin else "") if part)
    return f"{error_text(error)} ({origin})" if origin else error_text(error)


def trace_of(error: BaseException, redact: Callable[[str], str] | None = None) -> str:
    """The traceback from the first line that is not ours; the end of it where it is long."""
    parts = traceback.TracebackException(type(error), error, _outside(error.__traceback__), compact=True)
    text = _FILE.sub(lambda match: f"{match[1]}{relative(match[2])}{match[3]}", "".join(parts.format()))
    text = without_secrets(redact(text) if redact else text)
    lines = [cut(line, _LONGEST_LINE) for line in text.splitlines()]
    length, kept = 0, list[str]()
    for line in reversed(lines):
        length += len(line) + 1
        if length > _LONGEST_TRACE:
            kept.append("…")
            break
        kept.append(line)
    return "\n".join(reversed(kept))


def relative(file: str) -> str:
    """A path from the outermost folder of the import path, or the working folder, that holds it."""
    roots = {os.path.join(os.path.abspath(root), "") for root in (*sys.path, os.getcwd())} - {os.sep}
    holding = [root for root in roots if file.startswith(root)]
    if holding:
        return file[len(min(holding, key=len)) :]
    return os.path.basename(file) if os.path.isabs(file) else file


def without_secrets(text: str) -> str:
    """The text without values of environment variables that are called like secrets."""
    secrets = (value for name, value in os.environ.items() if SECRET_HEADER.search(name))
    return Redaction.of(secrets, shortest=_SHORTEST_SECRET)(text)


def _frames(error: BaseException) -> Iterator[tuple[str, int]]:
    for frame, line in traceback.walk_tb(error.__traceback__):
        yield frame.f_code.co_filename, line


def _is_internal(file: str) -> bool:
    return file.startswith("<frozen ")


def _outside(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that begins in code that is neither ours nor the library's, if there is one."""
    start = trace
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith((_OURS, _LIBRARY[0])) and not _is_internal(file):
            return trace
        trace = trace.tb_next
    return start
