"""How long a project keeps what it has run."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from ..base.periods import read_period
from ..configs import StrictConfig


def _period(text: str) -> str:
    if not read_period(text):
        raise ValueError(f'"{text}" would keep nothing; give at least 1h')
    return text


class RetentionSettings(StrictConfig):
    """What server and workers delete by themselves. Baselines, and what they rest on, always stay."""

    max_age: Annotated[str, AfterValidator(_period)] | None = Field(
        default=None, description="What ended longer ago is deleted: 90d, 12h, 8w"
    )
    max_executions: int | None = Field(
        default=None,
        ge=1,
        description="Of finished executions, only so many are kept: the newest",
    )
    keep_labels: list[Annotated[str, Field(pattern=r"^[^=]")]] = Field(
        default=[], description="Executions with one of these labels stay: key=value, or key for any value"
    )

    @model_validator(mode="after")
    def _deletes_something(self) -> RetentionSettings:
        if self.keep_labels and not self.enabled:
            raise ValueError("keepLabels needs maxAge or maxExecutions: without them everything is kept")
        return self

    @property
    def enabled(self) -> bool:
        return self.max_age is not None or self.max_executions is not None

    @property
    def age(self) -> timedelta | None:
        return None if self.max_age is None else read_period(self.max_age)
