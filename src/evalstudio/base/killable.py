"""Work that may take long, in child processes that can be killed: under limits of processor time and memory.

The children are started when the first work comes, kept for the next, and replaced when one had to end. Each
ends with its parent: idle by the end of its input, busy by its limit of processor time.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib
import math
import os
import pickle
import resource
import select
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import field
from pathlib import Path
from time import monotonic
from typing import IO, Any, cast

from .concurrency import Clock, evaluator_threads
from .lazy_dataclass import dataclass

_START = "import sys; sys.path.append(sys.argv[1]); from evalstudio.base.killable import serve; serve()"
_PACKAGES = str(Path(__file__).parents[2])
_LENGTH = struct.Struct(">Q")
# The children stand back behind the event loop, so work may take much longer than its processor time.
_NICENESS = 10
_WALL_FACTOR, _WALL_SECONDS = 10, 60
_RETIRED_BYTES = 256_000_000
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """The most that one piece of work may take."""

    seconds: float
    megabytes: int


class WorkKilled(Exception):
    """The work was ended. ``resource`` says what it had too much of."""

    def __init__(self, resource: str, message: str) -> None:
        super().__init__(message)
        self.resource = resource


class NotSendable(Exception):
    """What the work needs, or what came of it, cannot be handed from one process to the other."""


@dataclass(slots=True)
class Job:
    """One call of a function that a module has."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    limits: WorkLimits
    cancelled: bool = False
    child: Child | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def payload(self) -> bytes:
        name = f"{self.function.__module__}:{self.function.__qualname__}"
        try:
            return pickle.dumps((name, self.args, self.limits), pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            raise NotSendable(str(error)) from error

    def cancel(self) -> None:
        """End the work, or keep it from being begun."""
        with self.lock:
            self.cancelled = True
            if self.child is not None:
                self.child.kill()

    def belongs_to(self, child: Child | None) -> None:
        with self.lock:
            if self.cancelled and child is not None:
                raise WorkKilled("cancelled", "was cancelled")
            self.child = child


class Child:
    """A process that does one piece of work after the other."""

    def __init__(self) -> None:
        # No folder of the project is on its import path, and Ctrl-C is for its parent alone.
        command = [sys.executable, "-P", "-c", _START, _PACKAGES]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    def close(self) -> None:
        """Kill it and take its exit status, so that nothing of it is left."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def call(self, job: Job, payload: bytes) -> tuple[str, Any, bool]:
        """What came of the work: the kind of outcome, the value or error, and whether there may be a next."""
        stdin, stdout = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        deadline = monotonic() + job.limits.seconds * _WALL_FACTOR + _WALL_SECONDS
        try:
            _send(stdin, payload)
            while not select.select([stdout], [], [], _POLL_SECONDS)[0]:
                if monotonic() > deadline:
                    self.kill()
            return pickle.loads(_receive(stdout))
        except (OSError, EOFError):
            raise self._ended(job) from None

    def _ended(self, job: Job) -> WorkKilled:
        self.kill()
        code = -self._process.wait()
        if job.cancelled:
            return WorkKilled("cancelled", "was cancelled")
        if code in (signal.SIGXCPU, signal.SIGKILL):
            return _took_too_long(job.limits)
        return _needed_too_much(job.limits)


def _took_too_long(limits: WorkLimits) -> WorkKilled:
    return WorkKilled("seconds", f"took more than {limits.seconds:g} s of processor time and was ended")


def _needed_too_much(limits: WorkLimits) -> WorkKilled:
    return WorkKilled("megabytes", f"needed more than {limits.megabytes} MB of memory and was ended")


class KillablePool:
    """A few children for all work of this process."""

    def __init__(self, most: int) -> None:
        self._slots = threading.Semaphore(most)
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._children: set[Child] = set()
        self._owner = os.getpid()

    @property
    def pids(self) -> list[int]:
        """The processes there are."""
        with self._lock:
            return [child.pid for child in self._children]

    async def run(self, job: Job, clock: Clock | None = None) -> Any:
        """The value of the work, awaited. Who stops waiting ends the work."""
        try:
            return await evaluator_threads.run(lambda: self.call(job, clock), clock)
        except asyncio.CancelledError:
            job.cancel()
            raise

    def call(self, job: Job, clock: Clock | None = None) -> Any:
        """The value of the work, waited for. The clock stands still until there is a process for it."""
        payload = job.payload()
        with clock.paused() if clock is not None else nullcontext():
            self._wait_for_slot(job)
        try:
            kind, value = self._done(job, payload)
        finally:
            self._slots.release()
        if kind == "value":
            return value
        raise _needed_too_much(job.limits) if kind == "memory" else value

    def _wait_for_slot(self, job: Job) -> None:
        while not self._slots.acquire(timeout=_POLL_SECONDS):
            if job.cancelled:
                raise WorkKilled("cancelled", "was cancelled")

    def _done(self, job: Job, payload: bytes) -> tuple[str, Any]:
        child = self._child()
        try:
            job.belongs_to(child)
            kind, value, is_reusable = child.call(job, payload)
        except BaseException:
            self._drop(child)
            raise
        finally:
            job.belongs_to(None)
        if is_reusable and not job.cancelled:
            with self._lock:
                self._idle.append(child)
        else:
            self._drop(child)
        return kind, value

    def _child(self) -> Child:
        with self._lock:
            if self._owner != os.getpid():
                # After a fork the children are the parent's.
                self._owner, self._idle, self._children = os.getpid(), [], set()
            while self._idle:
                child = self._idle.pop()
                if child.alive:
                    return child
                self._children.discard(child)
                child.close()
        child = Child()
        with self._lock:
            self._children.add(child)
        return child

    def _drop(self, child: Child) -> None:
        child.close()
        with self._lock:
            self._children.discard(child)

    def close(self) -> None:
        """End all children; whoever waits for one learns that it was ended."""
        with self._lock:
            children = self._children if self._owner == os.getpid() else set[Child]()
            idle, self._idle, self._children = self._idle, [], set()
        for child in children:
            # The pipes of a busy one belong to who waits for it.
            if child in idle:
                child.close()
            else:
                child.kill()


killable = KillablePool(max(2, os.cpu_count() or 2))
atexit.register(killable.close)


def serve() -> None:
    """The life of a child: read a call, do it, write what came of it, until the input ends."""
    stdin, stdout = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever prints must not get between the answers.
    os.dup2(2, 1)
    with suppress(OSError):
        os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            payload = _receive(stdin)
        except EOFError:
            return
        outcome = _outcome(payload)
        is_reusable = _memory_bytes("resident") < _RETIRED_BYTES
        _send(stdout, _pickled(*outcome, is_reusable))


def _outcome(payload: bytes) -> tuple[str, Any]:
    try:
        name, args, limits = _unpickled(payload)
        module, _, function = name.partition(":")
        call = getattr(importlib.import_module(module), function)
        _limit(limits)
        return "value", call(*args)
    except MemoryError:
        return "memory", None
    except Exception as error:
        return "error", error
    finally:
        _limit(None)


def _unpickled(payload: bytes) -> tuple[str, tuple[Any, ...], WorkLimits]:
    try:
        return pickle.loads(payload)
    except Exception as error:
        raise NotSendable(str(error)) from None


def _pickled(kind: str, value: Any, is_reusable: bool) -> bytes:
    try:
        data = pickle.dumps((kind, value, is_reusable), pickle.HIGHEST_PROTOCOL)
        if kind == "error":
            # Some exceptions can be written and not read.
            pickle.loads(data)
        return data
    except Exception as error:
        message = f"{type(value).__name__}: {value if kind == 'error' else error}"
        return pickle.dumps(("error", RuntimeError(message), is_reusable))


def _limit(limits: WorkLimits | None) -> None:
    """Set what the next work may take, or take the limits away. Both count from what is used by now."""
    seconds, data = resource.RLIM_INFINITY, resource.RLIM_INFINITY
    if limits is not None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        seconds = math.ceil(usage.ru_utime + usage.ru_stime + limits.seconds)
        data = _memory_bytes("data") + limits.megabytes * 1_000_000
    for kind, soft in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_DATA, data)):
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (soft, resource.getrlimit(kind)[1]))


def _memory_bytes(kind: str) -> int:
    """What this process has in memory, or what it has reserved to write to; 0 where no one tells."""
    try:
        pages = Path("/proc/self/statm").read_text().split()
    except OSError:
        return 0
    return int(pages[1 if kind == "resident" else 5]) * resource.getpagesize()


def _send(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes:
    (length,) = _LENGTH.unpack(_exactly(pipe, _LENGTH.size))
    return _exactly(pipe, length)


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data
