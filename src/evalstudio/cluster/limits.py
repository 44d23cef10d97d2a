"""What all workers of a cluster keep together about calls of models: one limiter per key and model."""

from __future__ import annotations

import asyncio
from dataclasses import field
from importlib import import_module
from time import monotonic
from typing import Any

from ..base.concurrency import set_within
from ..base.lazy_dataclass import dataclass
from ..llm.quota import CallStanding, SharedLimits
from .connection import NAMESPACE

_NAME = "evalstudio-model-limits"
_IDLE_SECONDS = 600.0


@dataclass(slots=True)
class ModelLimit:
    """The calls of one model with one key. Moments are in seconds."""

    next_at: float = 0.0
    paused_until: float = 0.0
    members: dict[str, float] = field(default_factory=dict[str, float])

    def reserve(self, now: float, spacing_ms: int, longest_ms: int) -> int | None:
        """Milliseconds until a call may be made, by nobody else then; none where that is too long."""
        planned = max(self.next_at, now)
        wait = round((planned - now) * 1000)
        if wait > longest_ms:
            return None
        self.next_at = planned + spacing_ms / 1000
        return wait

    def join(self, now: float, role: str, member: str, lease_ms: int) -> CallStanding:
        """Count a worker in for a while among those that call in this role, and say how things stand."""
        name = f"{role}:{member}"
        self.members[name] = now + lease_ms / 1000
        self.members = {key: until for key, until in self.members.items() if until >= now}
        group = sorted(key for key in self.members if key.startswith(f"{role}:"))
        return CallStanding(max(0, round((self.paused_until - now) * 1000)), group.index(name), len(group))


class LimitsActor:
    """Keeps the limits of all models. It ends by itself when nobody has asked for a while."""

    def __init__(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._limits: dict[str, ModelLimit] = {}
        self._idle_seconds, self._asked_at = idle_seconds, monotonic()
        self._watching: asyncio.Task[None] | None = None

    async def ready(self) -> bool:
        self._watching = self._watching or asyncio.create_task(self._watch())
        return True

    async def reserve_call(self, key: str, spacing_ms: int, longest_ms: int) -> int | None:
        return self._of(key).reserve(monotonic(), spacing_ms, longest_ms)

    async def pause_calls(self, key: str, pause_ms: int) -> None:
        limit = self._of(key)
        limit.paused_until = max(limit.paused_until, monotonic() + pause_ms / 1000)

    async def join_callers(self, key: str, role: str, member: str, lease_ms: int) -> CallStanding:
        return self._of(key).join(monotonic(), role, member, lease_ms)

    def _of(self, key: str) -> ModelLimit:
        self._asked_at = monotonic()
        return self._limits.setdefault(key, ModelLimit())

    async def _watch(self) -> None:
        while self._asked_at + self._idle_seconds > monotonic():
            await set_within(asyncio.Event(), self._idle_seconds)
        ray: Any = import_module("ray")
        ray.kill(ray.get_actor(_NAME, NAMESPACE), no_restart=True)


class ClusterLimits(SharedLimits):
    """The limits of the cluster, as a model's client asks for them."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def reserve_call(self, key: str, spacing_ms: int, longest_ms: int) -> int | None:
        return await self._actor.reserve_call.remote(key, spacing_ms, longest_ms)

    async def pause_calls(self, key: str, pause_ms: int) -> None:
        await self._actor.pause_calls.remote(key, pause_ms)

    async def join_callers(self, key: str, role: str, member: str, lease_ms: int) -> CallStanding:
        return CallStanding(*await self._actor.join_callers.remote(key, role, member, lease_ms))


def start_limits(ray: Any) -> Any:
    """The actor of this cluster that keeps the limits; all commands on the cluster share it."""
    options: dict[str, Any] = {
        "name": _NAME,
        "namespace": NAMESPACE,
        # It outlives the command that began: another one may be under way with the same key.
        "lifetime": "detached",
        "get_if_exists": True,
        "num_cpus": 0,
        "max_restarts": -1,
        "max_task_retries": -1,
        "max_concurrency": 1000,
    }
    actor = ray.remote(LimitsActor).options(**options).remote()
    ray.get(actor.ready.remote())
    return actor
