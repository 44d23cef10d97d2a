"""The command line. ``main`` is what the ``evalstudio`` command runs."""

from __future__ import annotations

import sys
from io import TextIOWrapper

_OUT_OF_REACH = 4


def main() -> None:
    """Run the command line: a mistake of the user is exit code 2, what stayed out of reach exit code 4."""
    from .app import app

    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark, not a traceback.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    if "--json" in sys.argv:
        from .output import reserve_stdout_for_json

        reserve_stdout_for_json()
    try:
        app()
    except Exception as error:
        if not _is_for_the_user(error):
            raise
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(_OUT_OF_REACH if _is_out_of_reach(error) else 2)


def _is_out_of_reach(error: Exception) -> bool:
    from ..base.outages import Unavailable
    from ..storage.errors import DatabaseReplaced

    return isinstance(error, Unavailable | DatabaseReplaced)


def _is_for_the_user(error: Exception) -> bool:
    # Imported here so that commands that never fail do not pay for it.
    from ..base.problems import InvalidInput
    from ..cassettes import CassetteError
    from ..client.asynchronous import ServerError
    from ..llm.settings import ModelError
    from ..plugins import PluginError
    from ..storage.errors import InvalidCursor, StorageError

    refused = InvalidInput | InvalidCursor | PluginError | CassetteError
    return isinstance(error, refused | ModelError | ServerError | StorageError)
