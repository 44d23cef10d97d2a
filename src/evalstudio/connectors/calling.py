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
    """Await under a time limit that holds even if the work swallows its cancellation."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task,), timeout=seconds)
    except asyncio.CancelledError:
        await _abandon(task)
        raise
    if not task.done():
        await _abandon(task)
        raise Overdue
    if task.cancelled():
        raise ConnectorError("it cancelled itself")
    return task.result()


async def _abandon(task: asyncio.Task[object]) -> None:
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait((task,), timeout=_GRACE_SECONDS)
