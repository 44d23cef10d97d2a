"""A pool of workers on a cluster that heals itself: the task of a worker that died goes to another one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from ..base.concurrency import set_within
from ..base.lazy_dataclass import dataclass
from ..base.outages import Unavailable
from ..base.problems import InvalidInput

log = logging.getLogger("evalstudio")

T = TypeVar("T")

MOST_DEATHS = 3
# One task is worked on, the next one waits at the worker already.
_AT_ONCE = 2
_PATIENCE_SECONDS = 60.0


class WorkersLost(Unavailable):
    """Workers keep dying of the same task, or do not start at all."""

    def __init__(self, message: str, task: object = None) -> None:
        super().__init__(message)
        self.task = task


@dataclass(eq=False, slots=True)
class _Member:
    handle: Any
    answer: Any = None
    is_ready: bool = False
    tasks: int = 0


class ActorPool:
    """Workers that ``make`` makes. Each is ready once its ``ready`` method has answered."""

    def __init__(self, ray: Any, make: Callable[[], Any], size: int, at_once: int = _AT_ONCE) -> None:
        self._ray, self._make, self.size, self._at_once = ray, make, size, at_once
        self._members: list[_Member] = []
        self._starting: set[asyncio.Task[None]] = set()
        self._failure: Exception | None = None
        self._failed_starts = 0
        self._changed = asyncio.Event()

    async def first(self) -> Any:
        """What the first worker that starts says of itself."""
        return (await self._free()).answer

    async def call(self, method: str, *arguments: Any) -> Any:
        """What a worker returns; what it raises is raised here. Where workers die of it, it is given up."""
        for left in reversed(range(MOST_DEATHS)):
            member = await self._free()
            member.tasks += 1
            try:
                return await getattr(member.handle, method).remote(*arguments)
            except self._ray.exceptions.RayTaskError as error:
                raise _cause(error) from None
            except self._ray.exceptions.RayError as error:
                # Whatever the worker did not raise itself: it died, its node did, or it took too much memory.
                self._lost(member)
                if not left:
                    message = f"workers died again and again: {_first_line(error)}"
                    raise WorkersLost(message, arguments[0] if arguments else None) from None
            finally:
                member.tasks -= 1
                self._changed.set()
        raise AssertionError

    async def each(self, method: str, tasks: Iterable[T], *arguments: Any) -> AsyncGenerator[tuple[T, Any]]:
        """Each task with what became of it, in any order."""
        source, running = iter(tasks), dict[asyncio.Task[Any], T]()
        try:
            while True:
                while len(running) < self.size * self._at_once:
                    # What comes next may depend on what has come back.
                    if (task := next(source, None)) is None:
                        break
                    running[asyncio.create_task(self.call(method, task, *arguments))] = task
                if not running:
                    return
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for one in done:
                    yield running.pop(one), one.result()
        finally:
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    @property
    def is_busy(self) -> bool:
        """Whether any worker has a task."""
        return any(one.tasks for one in self._members)

    def tell_all(self, method: str) -> None:
        """Ask all workers something without waiting for an answer."""
        for member in self._members:
            if member.is_ready:
                getattr(member.handle, method).remote()

    def close(self) -> None:
        for task in self._starting:
            task.cancel()
        for member in self._members:
            with suppress(Exception):
                self._ray.kill(member.handle)
        self._members.clear()

    async def _free(self) -> _Member:
        """A worker that can take one more task, the one with the fewest."""
        while True:
            self._heal()
            if self._failure is not None:
                raise self._failure
            ready = [one for one in self._members if one.is_ready and one.tasks < self._at_once]
            if ready:
                return min(ready, key=lambda one: one.tasks)
            self._changed.clear()
            if not await set_within(self._changed, _PATIENCE_SECONDS) and not self._is_any_ready():
                log.warning("No worker has started yet: the cluster has no free CPU, or still starts nodes.")

    def _is_any_ready(self) -> bool:
        return any(one.is_ready for one in self._members)

    def _heal(self) -> None:
        while len(self._members) < self.size:
            member = _Member(self._make())
            self._members.append(member)
            starting = asyncio.create_task(self._start(member))
            self._starting.add(starting)
            starting.add_done_callback(self._starting.discard)

    async def _start(self, member: _Member) -> None:
        try:
            member.answer = await member.handle.ready.remote()
            member.is_ready, self._failed_starts = True, 0
        except (self._ray.exceptions.RayTaskError, self._ray.exceptions.RuntimeEnvSetupError) as error:
            self._failure = _cause(error)
        except self._ray.exceptions.RayError as error:
            self._lost(member)
            self._failed_starts += 1
            if self._failed_starts >= MOST_DEATHS:
                hint = "the same version of evalstudio must be installed on every node"
                self._failure = WorkersLost(
                    f"workers do not start on the cluster: {_first_line(error)}; {hint}"
                )
        except Exception as error:
            self._failure = _cause(error)
        self._changed.set()

    def _lost(self, member: _Member) -> None:
        if member in self._members:
            self._members.remove(member)
            log.warning("A worker of the cluster died; another one takes over what it worked on.")


class DrivenPool:
    """The same for code that is not async: its own loop runs while something is waited for."""

    def __init__(self, make_pool: Callable[[], ActorPool]) -> None:
        self._loop = asyncio.Runner()
        self._pool = self._loop.run(_made(make_pool))

    def first(self) -> Any:
        return self._loop.run(self._pool.first())

    def each(self, method: str, tasks: Iterable[T], *arguments: Any) -> Generator[tuple[T, Any]]:
        stream = self._pool.each(method, tasks, *arguments)
        try:
            while (answer := self._loop.run(_next(stream))) is not None:
                yield answer
        finally:
            self._loop.run(_closed(stream))

    def close(self) -> None:
        self._loop.run(self._closed())
        self._loop.close()

    async def _closed(self) -> None:
        self._pool.close()


async def _made(make_pool: Callable[[], ActorPool]) -> ActorPool:
    return make_pool()


async def _next(stream: AsyncGenerator[T]) -> T | None:
    return await anext(stream, None)


async def _closed(stream: AsyncGenerator[Any]) -> None:
    await stream.aclose()


def _cause(error: Exception) -> Exception:
    """What a worker raised, as it was raised there."""
    cause: object = getattr(error, "cause", None)
    return cause if isinstance(cause, Exception) else InvalidInput(_first_line(error))


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300].rstrip(".")
