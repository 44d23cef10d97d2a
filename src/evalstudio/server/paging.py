"""Parameters of lists: where to go on, how much, and what to narrow it to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Query
from pydantic import AfterValidator


@dataclass(frozen=True, slots=True)
class Paging:
    """Which part of a list is wanted."""

    cursor: str | None
    limit: int


async def _paging(
    cursor: Annotated[str | None, Query(max_length=200, description="Where the last page ended")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="The most items in one page")] = 50,
) -> Paging:
    return Paging(cursor, limit)


PagingDep = Annotated[Paging, Depends(_paging)]


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is too far away") from None


When = Annotated[datetime, AfterValidator(_in_utc)]


@dataclass(frozen=True, slots=True)
class Period:
    """From when to when; the end itself is left out."""

    since: datetime | None
    until: datetime | None


async def _period(
    since: Annotated[When | None, Query(description="Made at this moment or later")] = None,
    until: Annotated[When | None, Query(description="Made before this moment")] = None,
) -> Period:
    return Period(since, until)


PeriodDep = Annotated[Period, Depends(_period)]
TextQuery = Annotated[str | None, Query(max_length=500, description="Part of the name")]
