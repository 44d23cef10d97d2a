"""How many calls run at once, what a failure means, how long to wait, and when to give up.

A rate limit belongs to one model of one provider: its pause holds up no other model, in whatever role.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Protocol, TypeVar

from ..base.concurrency import own_clock_paused
from ..base.lazy_dataclass import dataclass
from ..base.retry import backoff, spread
from .settings import ModelError
from .usage import RoleUsage


class CallLimiter:
    """Lets at most ``limit`` calls through, in order; none while the provider asked for a pause.

    It also counts how often in a row the provider refused the credentials: asking on would only cost time.
    """

    __slots__ = (
        "_queue",
        "_refusal",
        "_refusals",
        "_refused_at",
        "_resumes_at",
        "_shrunk_at",
        "_successes",
        "in_flight",
        "limit",
        "most",
    )

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = most
        self.in_flight = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._successes = 0
        self._shrunk_at = float("-inf")
        self._resumes_at = float("-inf")
        self._refusals = 0
        self._refused_at = float("-inf")
        self._refusal = ""

    @property
    def refusal(self) -> str | None:
        """Why no call is made at the moment: the credentials were refused too often in a row."""
        if self._refusals < _MOST_REFUSALS or monotonic() - self._refused_at > _REFUSED_SECONDS:
            return None
        return f"{self._refusal} (refused {self._refusals} times in a row; not asked again for now)"

    def refused(self, message: str) -> None:
        self._refusals += 1
        self._refused_at = monotonic()
        self._refusal = message

    @property
    def queued(self) -> int:
        """Calls that wait for their turn."""
        return len(self._queue)

    @property
    def waiting_seconds(self) -> float:
        """How long the provider still wants us to wait; 0 when it does not."""
        return max(0.0, self._resumes_at - monotonic())

    async def enter(self, *, first: bool = False) -> None:
        """Wait for a slot. A call that is tried again goes ``first``: it has waited already."""
        if self._has_slot() and (first or not self._queue):
            self.in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if first:
            self._queue.appendleft(turn)
        else:
            self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            else:
                self._queue.remove(turn)
            raise

    def leave(self) -> None:
        self.in_flight -= 1
        self._admit()

    def succeeded(self) -> None:
        """A whole window of successes earns one more slot."""
        self._refusals = 0
        self._successes += 1
        if self._successes >= self.limit:
            self._successes = 0
            if self.limit < self.most:
                self.limit += 1
                self._admit()

    def throttled(self, started: float, seconds: float) -> None:
        """The provider refused a call begun at ``started``: halve, and let nobody in for some seconds.

        A burst that was under way when the limit was halved says nothing new, and halves nothing more.
        """
        now = monotonic()
        if started >= self._shrunk_at:
            self.limit = max(1, self.limit // 2)
            self._shrunk_at = now
        self._successes = 0
        self.pause(seconds)

    def pause(self, seconds: float) -> None:
        """Let nobody in for some seconds."""
        resumes_at = monotonic() + seconds
        if resumes_at > self._resumes_at:
            self._resumes_at = resumes_at
            self._resume()

    def set_most(self, most: int) -> None:
        """Another limit of calls at once; what rate limits have taken off it stays off."""
        if most == self.most:
            return
        self.limit = most if self.limit == self.most else min(self.limit, most)
        self.most = most
        self._admit()

    def _resume(self) -> None:
        # Loops may wake a little early; then there is a little left to wait.
        if self.waiting_seconds > 0:
            asyncio.get_running_loop().call_later(self.waiting_seconds, self._resume)
        else:
            self._admit()

    def _has_slot(self) -> bool:
        return self.in_flight < self.limit and monotonic() >= self._resumes_at

    def _admit(self) -> None:
        while self._queue and self._has_slot():
            turn = self._queue.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)


T = TypeVar("T")

_MOST_REFUSALS = 3
_REFUSED_SECONDS = 60.0
_CREDENTIALS = frozenset({401, 403})
_FIRST_WAIT = 0.5
_LONGEST_BACKOFF = 30.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
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


def wait_before(retry: int, requested: float | None, chance: float) -> float:
    """Seconds before the given retry (from 1): as the server asked, else doubling; spread by chance (0–1)."""
    if requested is not None:
        return requested + chance * min(0.25, requested / 4)
    return backoff(retry, _FIRST_WAIT, _LONGEST_BACKOFF) * (0.5 + chance / 2)


async def call_with_retries(
    attempt: Callable[[], Awaitable[T]],
    explain: Callable[[Exception], Failure],
    limiter: CallLimiter,
    policy: RetryPolicy,
    tally: RoleUsage,
    quota: Quota | None = None,
) -> T:
    """Attempt until it works or no further attempt may help; ``ModelError`` then."""
    deadline = monotonic() + policy.total_seconds
    with own_clock_paused():
        await _first_turn(limiter, deadline, tally, quota)
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
            limiter.succeeded()
            return result
        finally:
            limiter.leave()
        if failure.status in _CREDENTIALS:
            limiter.refused(failure.message)
        wait = wait_before(tries, failure.retry_after, spread())
        if failure.throttled:
            limiter.throttled(started, wait)
            if quota is not None:
                await quota.pause(wait)
        if not failure.again or tries > policy.retries or monotonic() + wait >= deadline:
            raise _gave_up(failure, tries)
        tally.retries += 1
        with own_clock_paused():
            ready = await _wait_for_turn(limiter, wait, deadline, tally, quota)
        if not ready:
            raise _gave_up(failure, tries)


class Quota(Protocol):
    """What one key may ask of one model, beside the calls at once of one role."""

    async def sync(self) -> None: ...
    async def pause(self, seconds: float) -> None: ...
    async def reserve(self, deadline: float) -> None: ...


async def _first_turn(limiter: CallLimiter, deadline: float, tally: RoleUsage, quota: Quota | None) -> None:
    """Wait for a slot. A pause that outlasts the deadline, or refused credentials, fail at once."""
    if quota is not None:
        await quota.sync()
    if (refusal := limiter.refusal) is not None:
        raise ModelError(refusal, status=401)
    start = monotonic()
    pause = limiter.waiting_seconds
    if start + pause >= deadline:
        raise ModelError(f"the provider asked for a pause that lasts another {pause:.0f} s", status=429)
    try:
        async with asyncio.timeout(deadline - start):
            await limiter.enter()
        await _reserve(limiter, deadline, quota)
    except TimeoutError:
        raise ModelError(f"no call could be made within {deadline - start:.3g} s", status=429) from None
    finally:
        tally.waited_seconds += monotonic() - start


async def _reserve(limiter: CallLimiter, deadline: float, quota: Quota | None) -> None:
    """Wait for one of the calls per minute, in the slot that was entered."""
    if quota is None:
        return
    try:
        await quota.reserve(deadline)
    except BaseException:
        limiter.leave()
        raise


async def _wait_for_turn(
    limiter: CallLimiter, seconds: float, deadline: float, tally: RoleUsage, quota: Quota | None
) -> bool:
    start = monotonic()
    try:
        async with asyncio.timeout(deadline - start):
            await asyncio.sleep(seconds)
            await limiter.enter(first=True)
        await _reserve(limiter, deadline, quota)
    except TimeoutError:
        return False
    finally:
        tally.waited_seconds += monotonic() - start
    return True


def _gave_up(failure: Failure, tries: int) -> ModelError:
    wait = f"; it asks to wait {failure.retry_after:g} s" if failure.retry_after else ""
    tried = f" (gave up after {tries} {'try' if tries == 1 else 'tries'}{wait})" if failure.again else ""
    return ModelError(failure.message + tried, raw=failure.raw, status=failure.status)
