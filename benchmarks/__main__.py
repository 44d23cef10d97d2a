"""``make bench``: every promise about speed, measured in one run."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from evalstudio.cli import COLLECT_EVERY

from . import comparing, conversations, executions, judges, reports, scoring, server, startup, turns
from .measuring import BenchmarkLine

BENCHES: dict[str, Callable[[], BenchmarkLine | list[BenchmarkLine]]] = {
    "startup": startup.measure,
    "judges": judges.measure,
    "turns": turns.measure,
    "scoring": scoring.measure,
    "conversations": conversations.measure,
    "executions": executions.measure,
    "comparing": comparing.measure,
    "reports": reports.measure,
    "server": server.measure,
}


def main() -> int:
    # Ours and what stands beside it run as in a process of the commands.
    gc.set_threshold(COLLECT_EVERY)
    wanted = sys.argv[1:] or list(BENCHES)
    table = Table("what", "ours", "beside", "promise", "kept")
    broken = 0
    for name in wanted:
        found = BENCHES[name]()
        for line in found if isinstance(found, list) else [found]:
            table.add_row(
                line.what, line.ours, line.floor, line.promise, "yes" if line.kept else "[red]NO[/]"
            )
            broken += not line.kept
    Console().print(table)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
