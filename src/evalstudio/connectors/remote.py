"""What every connector over HTTP can be told."""

from __future__ import annotations

from pydantic import Field

from ..configs import StrictConfig


class RemoteConfig(StrictConfig):
    """The limits a connector sets itself; the session's hold where it does not."""

    timeout_seconds: float | None = Field(
        default=None, gt=0, le=86_400, description="Longest wait for one answer; 60 if not given"
    )
    max_response_bytes: int | None = Field(
        default=None, ge=1, description="Largest answer that is read; 10,000,000 if not given"
    )
