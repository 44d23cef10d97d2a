"""Whether a folder has packages that declare entry points of a group, told from their files.

``importlib.metadata`` reads and parses those of every package, which takes ten times as long.
"""

from __future__ import annotations

import os
from pathlib import Path


def may_declare(folder: str, group: str) -> bool:
    """Whether a package in it may do so. What is not a folder that can be listed may hold anything."""
    try:
        entries = os.scandir(folder or ".")
    except OSError:
        return True
    with entries:
        return any(_mentions(entry, group.encode()) for entry in entries)


def _mentions(entry: os.DirEntry[str], group: bytes) -> bool:
    if not entry.name.lower().endswith((".dist-info", "egg-info")):
        return False
    try:
        return group in Path(entry.path, "entry_points.txt").read_bytes()
    except OSError:
        return False
