"""Calling a connector's function, whatever kind it is; apart from sessions, which bring an HTTP client."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, cast

from ..base.concurrency import Clock, agent_threads


def _is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it only makes a coroutine: functions and objects with an async ``__call__``."""
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & inspect.CO_COROUTINE:
        return True
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - asks what kind it is, not whether it is there
    )


async def call(function: Callable[..., Any], *arguments: Any, clock: Clock | None = None) -> object:
    """The function's answer; what blocks runs in a worker thread, and the clock only while it runs there."""
    if _is_async(function):
        returned: object = function(*arguments)
    else:
        returned = await agent_threads.run(lambda: function(*arguments), clock)
    return await cast(Awaitable[object], returned) if inspect.isawaitable(returned) else returned
