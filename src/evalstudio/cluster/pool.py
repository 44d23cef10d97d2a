"""A pool of workers on a cluster that heals itself: the task of a worker that died goes to another one."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

from ..base.problems import InvalidInput

log = logging.getLogger("evalstudio")

T = TypeVar("T")

MOST_DEATHS = 3
# One task is worked on, the next one waits at the worker already.
_AT_ONCE = 2
_LOOK_SECONDS = 5.0
_PATIENCE_SECONDS = 60.0


class WorkersLost(Exception):
    """Workers keep dying of the same task, or do not start at all."""


@dataclass(eq=False, slots=True)
class _Member:
    handle: Any
    is_ready: bool = False
    tasks: int = 0


@dataclass(slots=True)
class ActorPool:
    """Workers that ``make`` makes. Each is ready once its ``ready`` method has answered."""

    ray: Any
    make: Callable[[], Any]
    size: int
    _members: list[_Member] = field(default_factory=list[_Member])
    _starting: dict[Any, _Member] = field(default_factory=dict[Any, _Member])
    _failed_starts: int = 0
    _looked_at: float = 0.0

    def wait(self) -> Any:
        """What the first worker that starts says of itself."""
        self._heal()
        self._looked_at = monotonic()
        while True:
            self._heal()
            done, _ = self.ray.wait([*self._starting], num_returns=1, timeout=_LOOK_SECONDS)
            for reference in done:
                if (answer := self._started(reference)) is not None:
                    return answer
            self._tell_waiting()

    def run(self, method: str, tasks: Iterable[T], *arguments: Any) -> Generator[tuple[T, Any]]:
        """Each task with what became of it, in any order. What a worker raises is raised here."""
        source, again = iter(tasks), deque[T]()
        running: dict[Any, tuple[_Member, T]] = {}
        deaths: Counter[int] = Counter()
        is_over = False
        while True:
            self._heal()
            while (member := self._idle()) is not None and not (is_over and not again):
                task = again.popleft() if again else next(source, None)
                if task is None:
                    is_over = True
                    continue
                reference = getattr(member.handle, method).remote(task, *arguments)
                member.tasks += 1
                running[reference] = member, task
            if is_over and not running and not again:
                return
            waited = [*running, *self._starting]
            for reference in self.ray.wait(waited, num_returns=1, timeout=_LOOK_SECONDS)[0]:
                if reference in self._starting:
                    self._started(reference)
                    continue
                member, task = running.pop(reference)
                member.tasks -= 1
                try:
                    result = self.ray.get(reference)
                except self.ray.exceptions.RayActorError as error:
                    self._lost(member)
                    deaths[id(task)] += 1
                    if deaths[id(task)] >= MOST_DEATHS:
                        raise WorkersLost(_first_line(error)) from None
                    again.append(task)
                except self.ray.exceptions.RayTaskError as error:
                    raise _cause(error) from None
                else:
                    del reference
                    yield task, result

    def close(self) -> None:
        for member in self._members:
            with suppress(Exception):
                self.ray.kill(member.handle)
        self._members.clear()

    def _idle(self) -> _Member | None:
        ready = [member for member in self._members if member.is_ready and member.tasks < _AT_ONCE]
        return min(ready, key=lambda member: member.tasks, default=None)

    def _heal(self) -> None:
        while len(self._members) < self.size:
            member = _Member(self.make())
            self._members.append(member)
            self._starting[member.handle.ready.remote()] = member

    def _lost(self, member: _Member) -> None:
        if member in self._members:
            self._members.remove(member)
            log.warning("A worker of the cluster died; another one takes over what it worked on.")

    def _started(self, reference: Any) -> Any:
        member = self._starting.pop(reference)
        try:
            answer = self.ray.get(reference)
        except self.ray.exceptions.RayActorError as error:
            self._lost(member)
            self._failed_starts += 1
            if self._failed_starts >= MOST_DEATHS:
                message = f"workers do not start on the cluster: {_first_line(error)}"
                hint = "the same version of evalstudio must be installed on every node"
                raise WorkersLost(f"{message}; {hint}") from None
            return None
        except self.ray.exceptions.RayTaskError as error:
            raise _cause(error) from None
        member.is_ready, self._failed_starts = True, 0
        return answer

    def _tell_waiting(self) -> None:
        if monotonic() - self._looked_at > _PATIENCE_SECONDS:
            self._looked_at = monotonic()
            log.warning("No worker has started yet: the cluster has no free CPU, or is still starting nodes.")


def _cause(error: Any) -> Exception:
    """What a worker raised, as it was raised there."""
    cause: object = getattr(error, "cause", None)
    return cause if isinstance(cause, Exception) else InvalidInput(_first_line(error))


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]
