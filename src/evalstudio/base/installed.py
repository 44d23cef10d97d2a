"""Whether a folder has packages that declare entry points of a group, told from their files.

``importlib.metadata`` reads and parses those of every package, which takes ten times as long.
"""

from __future__ import annotations

import os
from functools import lru_cache
from io import FileIO


def may_declare(folder: str, group: str) -> bool:
    """Whether a package in it may do so. What is not a folder that can be listed may hold anything."""
    declared = _declared(folder or ".", changed_at(folder))
    return declared is None or group.encode() in declared


def changed_at(folder: str) -> int:
    """When a package was last installed into a folder or removed from it."""
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=1024)
def _declared(folder: str, _changed_at: int) -> bytes | None:
    """What the packages of a folder declare, one after the other; nothing where that cannot be told."""
    try:
        with os.scandir(folder) as entries:
            places = [
                entry.path for entry in entries if entry.name.lower().endswith((".dist-info", "egg-info"))
            ]
    except FileNotFoundError:
        return b""
    except OSError:
        return None
    return b"\n".join(map(_entry_points, places))


def _entry_points(place: str) -> bytes:
    try:
        with FileIO(f"{place}/entry_points.txt") as file:
            return file.readall()
    except OSError:
        return b""
