"""Running a command's coroutine, on the fastest event loop there is."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    try:
        import uvloop
    except ImportError:
        import asyncio

        return asyncio.run(work)
    return uvloop.run(work)
