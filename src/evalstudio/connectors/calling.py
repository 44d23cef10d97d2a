"""Calling a connector's function: in the loop or in a thread, and never longer than allowed."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, cast

from ..threads import blocking
from .errors import ConnectorError

_GRACE_SECONDS = 1.0


class Overdue(Exception):
    """The function did not return in time."""


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it only makes a coroutine: functions and objects with an async ``__call__``."""
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & inspect.CO_COROUTINE:
        return True
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - asks what kind it is, not whether it is there
    )


async def call(function: Callable[..., Any], *given: Any) -> object:
    """The function's answer; what blocks runs in a worker thread."""
    try:
        if is_async(function):
            returned: object = function(*given)
        else:
            returned = await blocking.run(lambda: function(*given))
        return await cast(Awaitable[object], returned) if inspect.isawaitable(returned) else returned
    except SystemExit as error:
        # Let through, it would end the event loop and with it every other run.
        raise RuntimeError(f"it tried to exit the program ({error})") from None


async def bounded(work: Coroutine[Any, Any, object], seconds: float) -> object:
    """Await under a time limit that holds even if the work swallows its cancellation.

    What is awaited is a future beside the task, so that nobody has to wait for a task that will not end.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[object] = loop.create_future()
    task = loop.create_task(_carry(work, outcome))
    timer = loop.call_later(seconds, _expire, outcome)
    try:
        return await outcome
    finally:
        timer.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait((task,), timeout=_GRACE_SECONDS)


async def _carry(work: Coroutine[Any, Any, object], outcome: asyncio.Future[object]) -> None:
    try:
        returned = await work
    except asyncio.CancelledError:
        _fail(outcome, ConnectorError("it cancelled itself"))
    except Exception as error:
        _fail(outcome, error)
    else:
        if not outcome.done():
            outcome.set_result(returned)


def _expire(outcome: asyncio.Future[object]) -> None:
    _fail(outcome, Overdue())


def _fail(outcome: asyncio.Future[object], error: Exception) -> None:
    if not outcome.done():
        # A future takes no StopIteration: it would end the coroutine that awaits it.
        stopped = isinstance(error, StopIteration)
        outcome.set_exception(RuntimeError("StopIteration") if stopped else error)
