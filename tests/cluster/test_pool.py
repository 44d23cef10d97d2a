"""A pool of workers, with handles that answer as those of Ray do when something goes wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.cluster import connection
from evalstudio.cluster.pool import MOST_DEATHS, ActorPool, WorkersLost


def ray() -> Any:
    """The library as commands import it: what it reads then is of this process for good."""
    return connection._import_ray(None)  # pyright: ignore[reportPrivateUsage]


class Method:
    """A method of a worker: says what it is to say, or raises it."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    async def remote(self, *_: object) -> object:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class Worker:
    def __init__(self, answer: object, is_ready: object = True) -> None:
        self.ready, self.work = Method(is_ready), Method(answer)


def pool_of(*workers: Worker) -> ActorPool:
    """A pool of one worker, in whose place the next one comes when it dies."""
    return ActorPool(ray(), partial(next, iter(workers)), 1)


def out_of_memory() -> Exception:
    reason = "Task was killed due to the node running low on memory.\nMemory on the node: …"
    return ray().exceptions.OutOfMemoryError(reason)


def node_died() -> Exception:
    return ray().exceptions.NodeDiedError("the node is gone")


def crashed() -> Exception:
    return ray().exceptions.WorkerCrashedError()


@pytest.mark.parametrize("death", [out_of_memory, node_died, crashed])
async def test_whatever_ends_a_worker_another_one_takes_over(death: Callable[[], Exception]) -> None:
    pool = pool_of(Worker(death()), Worker("done"))
    assert await pool.call("work", 1) == "done"


async def test_what_workers_die_of_again_and_again_is_told() -> None:
    pool = pool_of(*(Worker(out_of_memory()) for _ in range(MOST_DEATHS)))
    with pytest.raises(WorkersLost, match=r"again and again: Task was killed .* low on memory$"):
        await pool.call("work", 1)


async def test_workers_that_die_before_they_are_ready_are_replaced_and_given_up() -> None:
    pool = pool_of(Worker("", out_of_memory()), Worker("done"))
    assert await pool.call("work", 1) == "done"
    pool = pool_of(*(Worker("", out_of_memory()) for _ in range(MOST_DEATHS + 1)))
    with pytest.raises(WorkersLost, match="workers do not start on the cluster: Task was killed"):
        await pool.call("work", 1)


@pytest.mark.parametrize("at_start", [True, False])
async def test_what_a_worker_raises_is_raised_here(at_start: bool) -> None:
    raised = ray().exceptions.RayTaskError("work", "a traceback", InvalidInput("the plan is wrong"))
    pool = pool_of(Worker("done", raised) if at_start else Worker(raised))
    answer: Awaitable[object] = pool.call("work", 1)
    with pytest.raises(InvalidInput, match="the plan is wrong"):
        await answer
