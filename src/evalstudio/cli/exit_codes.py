"""The exit codes of all commands, ``eval run``, ``score``, ``compare`` and the pytest plugin alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ..reporting.requirements import Standing

ExitCode = Literal[0, 1, 2, 3, 4, 70, 130]

MET: ExitCode = 0
"""What is required is met; without requirements: everything that was asserted passed."""
MISSED: ExitCode = 1
"""Something failed, or a requirement is missed."""
WRONG_INPUT: ExitCode = 2
"""The command, a file or a definition is wrong; nothing was run."""
UNDECIDED: ExitCode = 3
"""Not decided: something errored or was not run, or nothing was asserted."""
OUT_OF_REACH: ExitCode = 4
"""A server or a database is out of reach."""
CRASHED: ExitCode = 70
"""A defect of EvalStudio itself, which says nothing of what was evaluated."""
STOPPED: ExitCode = 130
"""Stopped by Ctrl-C or a signal."""


def code_of(standing: Standing) -> ExitCode:
    """The exit code of a verdict."""
    from ..reporting.requirements import EXIT_CODES

    return EXIT_CODES[standing]
