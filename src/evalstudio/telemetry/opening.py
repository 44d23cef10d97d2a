"""Telemetry for as long as a project is open, where it is asked for."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ..base.concurrency import blocking
from ..base.extras import needs_extra
from ..base.problems import InvalidInput
from ..base.redaction import SHORTEST_IN_ANSWERS, Redaction
from .attributes import Capture, Cleaner, capture_asked_for

if TYPE_CHECKING:
    from .recording import Telemetry

log = logging.getLogger("evalstudio")

VARIABLE = "EVALSTUDIO_TELEMETRY"
FLUSH_SECONDS = 5.0
_WORDS = {"1": True, "true": True, "0": False, "false": False}


def asked_for(enabled: bool) -> bool:
    """Whether telemetry is sent: as the environment says, else as the project does."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    word = os.environ.get(VARIABLE, "").strip()
    if not word:
        return enabled
    answer = _WORDS.get(word.lower())
    if answer is None:
        raise InvalidInput(f'{VARIABLE} is "{word[:40]}"; it is 1 (telemetry is sent) or 0 (it is not)')
    return answer


@asynccontextmanager
async def open_telemetry(
    *,
    enabled: bool = False,
    endpoint: str | None = None,
    explanations: bool = True,
    flush_seconds: float = FLUSH_SECONDS,
    secrets: Collection[str] = (),
) -> AsyncGenerator[Telemetry | None]:
    """What sends telemetry, or nothing where nobody asks for it. At the end what is left is sent."""
    if not asked_for(enabled):
        yield None
        return
    capture = capture_asked_for()
    if capture.problem:
        log.warning("%s", capture.problem)
    redact = Redaction.of(secrets, shortest=SHORTEST_IN_ANSWERS)
    telemetry = _opened(endpoint, Cleaner(redact), capture, explanations)
    try:
        yield telemetry
    finally:
        await blocking.run(lambda: telemetry.pipeline.close(flush_seconds))


def _opened(endpoint: str | None, clean: Cleaner, capture: Capture, explanations: bool) -> Telemetry:
    with needs_extra("otel", "telemetry", InvalidInput):
        from .export import Pipeline, UnusableTelemetry
        from .recording import Telemetry
    try:
        pipeline = Pipeline(endpoint)
    except UnusableTelemetry as error:
        raise InvalidInput(f"telemetry cannot be sent: {error}") from None
    return Telemetry(pipeline, clean, capture, explanations=explanations)
