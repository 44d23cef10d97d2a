"""The processes below another one, as /proc tells of them."""

from __future__ import annotations

from pathlib import Path


def descendants(process: int) -> list[int]:
    children = Path(f"/proc/{process}/task").glob("*/children")
    below = [int(one) for listed in children for one in listed.read_text().split()]
    return [*below, *(further for one in below for further in descendants(one))]


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
