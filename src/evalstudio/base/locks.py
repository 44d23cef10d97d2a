"""Files that several processes append to: locked until they are closed, and written whole."""

from __future__ import annotations

from typing import IO


def lock(file: IO[bytes], *, wait: bool = False) -> bool:
    """Whether the file is now locked for us; ``False`` where another process has it and we do not wait.

    Where the system or the file system knows no locks, the file counts as ours.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def write_all(file: IO[bytes], data: bytes) -> None:
    """All of the data: an unbuffered file may take a part of it at a time."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
