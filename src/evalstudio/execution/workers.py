"""Who works on a run: names that say on which machine, in which namespace and process a worker lives."""

from __future__ import annotations

import os
import re
import secrets
import socket
from functools import lru_cache
from pathlib import Path

_PROC = Path("/proc")
_START_TIME = 19  # field 22 of /proc/PID/stat, counted from behind the name in brackets
# The number of a process and when it began. Longer ones no system gives out, and asking for them fails.
_PROCESS = re.compile("([0-9]{1,9})(?:-([0-9]{1,18}))?")


def new_worker_id() -> str:
    """A name by which others of the same machine and namespace can tell whether the process still runs."""
    pid = os.getpid()
    return f"{_place()}:{pid}-{_started(pid) or 0}:{secrets.token_hex(4)}"


def has_died(worker_id: str, *, one_machine: bool = False) -> bool:
    """Whether a worker is gone for certain. Nothing is certain about other machines and namespaces.

    Where all workers are on one machine, those from before it was started anew are gone.
    """
    place, _, rest = worker_id.partition(":")
    if one_machine and place.count("/") == 2 and place.split("/")[1] != _boot():
        return True
    process = _PROCESS.fullmatch(rest.partition(":")[0])
    if place != _place() or process is None:
        return False
    number, started = int(process[1]), int(process[2] or 0)
    try:
        os.kill(number, 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    # Another process may have been given the same number since.
    return started > 0 and _started(number) != started


@lru_cache(maxsize=1)
def _place() -> str:
    """The machine since it was started, and the namespace of process numbers (a container has its own).

    Two containers often have one host name, and process numbers mean nothing outside of their namespace.
    """
    return f"{socket.gethostname()}/{_boot()}/{_namespace()}"


def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_bytes()[:8].decode()
    except OSError:
        return "0"


def _namespace() -> int:
    try:
        return (_PROC / "self/ns/pid").stat().st_ino
    except OSError:
        return 0


def _started(pid: int) -> int | None:
    """When a process began, in clock ticks since the machine did."""
    try:
        # As bytes: a process may have any name, brackets and broken characters included.
        stat = (_PROC / f"{pid}/stat").read_bytes()
        return int(stat.rpartition(b")")[2].split()[_START_TIME])
    except (OSError, ValueError, IndexError):
        return None
