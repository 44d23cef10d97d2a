"""The processes below another one, as /proc tells of them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def descendants(process: int) -> list[int]:
    below = list[int]()
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            below += map(int, children.read_text().split())
    return [*below, *(further for one in below for further in descendants(one))]


def name_of(process: int) -> str:
    """Its command line; nothing where it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ").strip()
    return ""


def is_running(process: int) -> bool:
    """Whether it is there and not merely waits to be counted."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def megabytes(process: int) -> int:
    """What a process has in memory now."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024
