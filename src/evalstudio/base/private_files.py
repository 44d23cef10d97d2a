"""Files and folders that are their owner's alone: databases, keys, tokens, what models answered."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_OTHERS = stat.S_IRWXO


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner may enter; one that is there stays as it is."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def open_private(path: Path, flags: int) -> int:
    """A file descriptor; a file that is made by it can be read and written by its owner alone."""
    if flags & os.O_CREAT:
        make_private_folder(path.parent)
    descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0), 0o600)
    keep_private(path)
    return descriptor


def make_private_file(path: Path) -> None:
    """Make an empty file for its owner alone, where there is none yet, before another program fills it."""
    os.close(open_private(path, os.O_WRONLY | os.O_CREAT))


def keep_private(path: Path) -> None:
    """Take a file away from everybody else, if they had it by default.

    What the owner opened for a group and for nobody else was meant, and stays.
    """
    # Somebody else's file, and file systems without owners, are left alone.
    with suppress(OSError, NotImplementedError):
        mode = path.stat().st_mode
        if mode & _OTHERS and stat.S_ISREG(mode):
            path.chmod(0o600)
