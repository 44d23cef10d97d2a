"""Trying again: what a failure means, how long to wait, and when to give up.

The schedule is pure functions; ``persist`` is the thin loop around them.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import random
from time import monotonic
from typing import TypeVar

from .errors import ModelError
from .limits import Gate
from .usage import RoleUsage

T = TypeVar("T")

_FIRST_WAIT = 0.5
_LONGEST_BACKOFF = 30.0


@dataclass(frozen=True, slots=True)
class Policy:
    """How often and how long to try."""

    retries: int
    attempt_seconds: float
    total_seconds: float


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one attempt failed, in words, and whether another one may help."""

    message: str
    status: int | None = None
    again: bool = False
    throttled: bool = False
    retry_after: float | None = None
    raw: str | None = None


def retry_after(headers: Mapping[str, str] | None, now: datetime | None = None) -> float | None:
    """The seconds a server asks to wait: ``Retry-After`` as a number or an HTTP date, or in milliseconds."""
    given = {name.lower(): value for name, value in (headers or {}).items()}
    milliseconds = _seconds(given.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = given.get("retry-after")
    seconds = _seconds(text)
    return _until(text, now or datetime.now(UTC)) if seconds is None and text else seconds


def _seconds(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until(text: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def wait_before(retry: int, asked: float | None, chance: float) -> float:
    """Seconds before the given retry (from 1): as the server asked, else doubling; spread by chance (0–1)."""
    if asked is not None:
        return asked + chance * min(0.25, asked / 4)
    longest = min(_LONGEST_BACKOFF, _FIRST_WAIT * 2 ** min(retry - 1, 16))
    return longest * (0.5 + chance / 2)


async def persist(
    attempt: Callable[[], Awaitable[T]],
    explain: Callable[[Exception], Failure],
    gate: Gate,
    policy: Policy,
    tally: RoleUsage,
) -> T:
    """Attempt until it works or no further attempt may help; ``ModelError`` then."""
    await gate.enter()
    deadline = monotonic() + policy.total_seconds
    tries = 0
    while True:
        tries += 1
        started = monotonic()
        try:
            async with asyncio.timeout(min(policy.attempt_seconds, max(0.0, deadline - started))):
                result = await attempt()
        except ModelError:
            raise
        except Exception as error:
            failure = explain(error)
        else:
            gate.succeeded()
            return result
        finally:
            gate.leave()
        wait = wait_before(tries, failure.retry_after, random())
        if failure.throttled:
            gate.throttled(started, min(wait, policy.total_seconds))
        if not failure.again or tries > policy.retries or monotonic() + wait >= deadline:
            raise _gave_up(failure, tries)
        tally.retries += 1
        if not await _wait_for_turn(gate, wait, deadline, tally):
            raise _gave_up(failure, tries)


async def _wait_for_turn(gate: Gate, seconds: float, deadline: float, tally: RoleUsage) -> bool:
    start = monotonic()
    try:
        async with asyncio.timeout(deadline - start):
            await asyncio.sleep(seconds)
            await gate.enter(first=True)
    except TimeoutError:
        return False
    finally:
        tally.waited_seconds += monotonic() - start
    return True


def _gave_up(failure: Failure, tries: int) -> ModelError:
    message = failure.message
    if failure.again:
        message += f" (gave up after {tries} {'try' if tries == 1 else 'tries'}"
        if failure.retry_after:
            message += f"; it asks to wait {failure.retry_after:g} s"
        message += ")"
    return ModelError(message, raw=failure.raw, status=failure.status)
