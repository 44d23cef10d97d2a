"""What one key may ask of one model, over all processes that share a database.

Calls at once are divided among the processes that make calls at the moment, each of which says so once a
second; calls per minute are spaced one by one. Without a database the same holds for this process alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from hashlib import sha256
from time import monotonic
from typing import NamedTuple, Protocol, TypeVar
from uuid import uuid4

from ..base.lazy_dataclass import dataclass
from .limits import CallLimiter
from .settings import Access, ModelError, Target

log = logging.getLogger("evalstudio")

T = TypeVar("T")
_SYNC_SECONDS = 1.0
_MEMBER_MS = 5_000
_UNANSWERED_SECONDS = 30.0
_LONGEST_PAUSE_SECONDS = 31_536_000.0
# What the database takes must not hold up a call for long: without an answer this process counts alone.
_LONGEST_SYNC_SECONDS = 5.0


class CallStanding(NamedTuple):
    """How long everybody pauses, and which of how many processes this one is."""

    paused_ms: int
    position: int
    members: int


class SharedLimits(Protocol):
    """Where processes keep their limits together: the store of a project."""

    async def reserve_call(self, key: str, spacing_ms: int, longest_ms: int) -> int | None: ...
    async def pause_calls(self, key: str, pause_ms: int) -> None: ...
    async def join_callers(self, key: str, role: str, member: str, lease_ms: int) -> CallStanding: ...


def quota_key(access: Access, target: Target) -> str:
    """A name for a key and a model that gives neither away."""
    parts = (target.provider, access.base_url, access.api_key, target.model)
    return sha256("\n".join(parts).encode()).hexdigest()[:32]


class ModelQuota:
    """The calls of one model with one key in this process, in all roles."""

    def __init__(self, key: str, per_minute: int | None = None, shared: SharedLimits | None = None) -> None:
        self._key = key
        self._spacing_ms = None if per_minute is None else max(1, round(60_000 / per_minute))
        self._shared = shared
        self._member = uuid4().hex
        self._next_at = 0.0
        self._limiters: dict[str, tuple[CallLimiter, int, float]] = {}

    def of_role(self, role: str, limiter: CallLimiter) -> RoleQuota:
        """The same for a role that calls this model, with its own limit of calls at once."""
        self._limiters.setdefault(role, (limiter, limiter.most, float("-inf")))
        return RoleQuota(self, role)

    async def sync(self, role: str) -> None:
        """Learn what the other processes do, at most once a second."""
        limiter, most, synced_at = self._limiters[role]
        if self._shared is None or monotonic() - synced_at < _SYNC_SECONDS:
            return
        self._limiters[role] = (limiter, most, monotonic())
        standing = await self._ask(self._shared.join_callers(self._key, role, self._member, _MEMBER_MS))
        if standing is None:
            self._limiters[role] = (limiter, most, monotonic() + _UNANSWERED_SECONDS)
            return
        share = most // standing.members + (standing.position < most % standing.members)
        limiter.set_most(max(1, share))
        if standing.paused_ms:
            limiter.pause(standing.paused_ms / 1000)

    async def pause(self, seconds: float) -> None:
        """The provider asked for a pause: for all roles, in all processes."""
        for limiter, _, _ in self._limiters.values():
            limiter.pause(seconds)
        if self._shared is not None:
            pause_ms = round(min(seconds, _LONGEST_PAUSE_SECONDS) * 1000)
            await self._ask(self._shared.pause_calls(self._key, pause_ms))

    async def reserve(self, deadline: float) -> None:
        """Wait until the calls per minute allow one more; past the deadline it is an error at once."""
        if self._spacing_ms is None:
            return
        left = max(0, round((deadline - monotonic()) * 1000))
        wait = await self._planned(self._spacing_ms, left)
        if wait is None:
            raise ModelError(
                "the calls per minute (llmSettings.requestsPerMinute) are spoken for beyond the time limit",
                status=429,
            )
        await asyncio.sleep(wait / 1000)

    async def _planned(self, spacing_ms: int, longest_ms: int) -> float | None:
        if self._shared is not None:
            try:
                async with asyncio.timeout(_LONGEST_SYNC_SECONDS):
                    return await self._shared.reserve_call(self._key, spacing_ms, longest_ms)
            except Exception as error:
                log.warning("Calls of models are counted by this process alone for now: %s", error)
        now = monotonic()
        planned = max(self._next_at, now)
        if (planned - now) * 1000 > longest_ms:
            return None
        self._next_at = planned + spacing_ms / 1000
        return (planned - now) * 1000

    async def _ask(self, answer: Awaitable[T]) -> T | None:
        try:
            async with asyncio.timeout(_LONGEST_SYNC_SECONDS):
                return await answer
        except Exception as error:
            log.warning("Limits of models hold for this process alone for now: %s", error)
            return None


@dataclass(frozen=True, slots=True)
class RoleQuota:
    """What one role may ask of one model."""

    model: ModelQuota
    role: str

    async def sync(self) -> None:
        await self.model.sync(self.role)

    async def pause(self, seconds: float) -> None:
        await self.model.pause(seconds)

    async def reserve(self, deadline: float) -> None:
        await self.model.reserve(deadline)
