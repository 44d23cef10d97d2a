"""A conversation as telemetry sees it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ..telemetry import RunFacts
from .results import RunResult

if TYPE_CHECKING:
    from ..telemetry.recording import Telemetry


async def traced(telemetry: Telemetry | None, facts: RunFacts, work: Awaitable[RunResult]) -> RunResult:
    """What a conversation comes to, told as a span where telemetry is asked for."""
    if telemetry is None:
        return await work
    with telemetry.run(facts) as trace:
        result = await work
        verdict = result.verdict
        trace.ended(
            verdict.outcome,
            fault=verdict.fault,
            score=verdict.score,
            thread_id=result.thread_id,
            error=result.error,
        )
        return result
