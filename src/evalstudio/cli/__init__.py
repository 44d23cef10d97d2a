"""The command line. ``main`` is what the ``evalstudio`` command runs."""

from __future__ import annotations

import gc
import logging
import sys
import traceback
from collections.abc import Callable
from functools import cache
from io import TextIOWrapper
from typing import Any, Protocol, cast, runtime_checkable

import typer

from .exit_codes import CRASHED, OUT_OF_REACH, STOPPED, WRONG_INPUT
from .output import PlainFormatter, warn

COLLECT_EVERY = 200_000


def main() -> None:
    """Run the command line: a mistake of the user is exit code 2, what stayed out of reach exit code 4."""
    # What is imported stays: looking through it for garbage again and again takes a tenth of a short command.
    gc.set_threshold(COLLECT_EVERY)
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PlainFormatter())
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark, not a traceback.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    if "--json" in sys.argv:
        from .output import reserve_stdout_for_json

        reserve_stdout_for_json()
    try:
        code: object = _command(sys.argv[1] if len(sys.argv) > 1 else None)(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except typer.Abort:
        warn("Aborted.")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    except Exception as error:
        if isinstance(error, UsageMistake):
            _explain(error)
            sys.exit(error.exit_code)
        if not _is_for_the_user(error):
            warn(traceback.format_exc().rstrip())
            sys.exit(CRASHED)
        warn(f"Error: {error}")
        sys.exit(OUT_OF_REACH if _is_out_of_reach(error) else WRONG_INPUT)


@cache
def _command(word: str | None) -> Callable[..., object]:
    """The command with its options, read from the functions once per process."""
    from .app import app_for

    if word is not None and not word.startswith("-"):
        from .quick_start import start_quickly

        start_quickly()
    return typer.main.get_command(app_for(word))


def _is_out_of_reach(error: Exception) -> bool:
    from ..base.outages import Unavailable
    from ..storage.errors import DatabaseReplaced

    return isinstance(error, Unavailable | DatabaseReplaced)


@runtime_checkable
class UsageMistake(Protocol):
    """An option or argument that is wrong, as the library that reads them tells of it."""

    exit_code: int

    def format_message(self) -> str: ...


def _explain(error: UsageMistake) -> None:
    message, context = error.format_message(), cast(Any, getattr(error, "ctx", None))
    # A group without a command has shown its help, and has no more to say.
    if not message:
        return
    if context is not None:
        warn(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.")
    warn(f"Error: {message}")


def _is_for_the_user(error: Exception) -> bool:
    # Imported here so that commands that never fail do not pay for it.
    from ..base.outages import Unavailable
    from ..base.problems import InvalidInput
    from ..cassettes import CassetteError
    from ..client.answers import ServerError
    from ..llm.settings import ModelError
    from ..plugins import PluginError
    from ..storage.errors import InvalidCursor, StorageError

    refused = InvalidInput | InvalidCursor | PluginError | CassetteError
    return isinstance(error, refused | ModelError | ServerError | StorageError | Unavailable)
