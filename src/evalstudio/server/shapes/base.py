"""What all shapes share, and pages of lists."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from ...base.strict_values import StrictValues

T = TypeVar("T")
Text = Annotated[str, StringConstraints(min_length=1, max_length=10_000)]
Identity = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z_-]{1,64}$")]


class Shape(BaseModel):
    """camelCase in JSON, unknown keys refused."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        # What is sent is sent whole: clients need not ask whether a field is there.
        json_schema_serialization_defaults_required=True,
    )


class Request(Shape, StrictValues):
    """What is asked for: numbers and truth values as such, never as text."""


class PageOf(Shape, Generic[T]):
    """Part of a list, newest first."""

    items: list[T]
    cursor: str | None = Field(description="Pass it on to read on; null at the end of the list")
