"""Telemetry for as long as a project is open, where it is asked for."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING

from ..base.concurrency import blocking
from ..base.extras import needs_extra
from ..base.problems import InvalidInput
from ..base.redaction import SHORTEST_IN_ANSWERS, Redaction
from ..base.references import UnsetVariable, resolve
from .attributes import Cleaner, capture_asked_for

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


class TelemetrySource:
    """What a project sends, opened when something is to be told first: who only reads imports nothing."""

    def __init__(
        self,
        *,
        enabled: bool = False,
        endpoint: str | None = None,
        explanations: bool = True,
        flush_seconds: float = FLUSH_SECONDS,
        secrets: Collection[str] = (),
    ) -> None:
        self._enabled = asked_for(enabled)
        self._endpoint = endpoint
        self._explanations = explanations
        self._flush_seconds = flush_seconds
        self._secrets = secrets

    @cached_property
    def opened(self) -> Telemetry | None:
        """What sends it; nothing where nobody asks for it."""
        return self._open() if self._enabled else None

    async def close(self) -> None:
        """Send what is left, for a bounded time."""
        telemetry = self.__dict__.get("opened")
        if telemetry is not None:
            await blocking.run(lambda: telemetry.pipeline.close(self._flush_seconds))

    def _open(self) -> Telemetry:
        with needs_extra("otel", "telemetry", InvalidInput):
            from .export import Pipeline, UnusableTelemetry
            from .recording import Telemetry
        capture = capture_asked_for()
        if capture.problem:
            log.warning("%s", capture.problem)
        redact = Redaction.of(self._secrets, shortest=SHORTEST_IN_ANSWERS)
        try:
            endpoint = resolve(self._endpoint, "telemetry.endpoint") if self._endpoint else None
            pipeline = Pipeline(endpoint)
        except (UnusableTelemetry, UnsetVariable) as error:
            raise InvalidInput(f"telemetry cannot be sent: {error}") from None
        return Telemetry(pipeline, Cleaner(redact), capture, explanations=self._explanations)
