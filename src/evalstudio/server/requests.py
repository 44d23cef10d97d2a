"""What routes depend on: the open project, paging, versions and idempotency keys."""

from __future__ import annotations

import hashlib
import re
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, cast

from fastapi import Depends, Header, Query, Request, Response
from pydantic import AfterValidator

from ..base.lazy_dataclass import dataclass
from ..base.times import in_utc
from ..execution.definitions import DefinitionService
from ..execution.home import JudgedExecutions
from ..execution.scorings import Scorings
from ..storage.contract import IdempotencyKey
from ..storage.errors import NotFound
from .background import BackgroundWork
from .errors import ApiError
from .policy import ServerPolicy
from .security import AccessControl

if TYPE_CHECKING:
    from ..execution.alarm_delivery import AlarmDeliveryTask
    from ..execution.intake import IntakeTask
    from ..execution.processor import ProcessorTask
    from ..execution.receiving import Receiver
    from ..execution.workspace import Workspace
    from ..storage.store import SqlStore
    from .events import EventHub


@dataclass(slots=True)
class Studio:
    """An open project behind a server."""

    workspace: Workspace
    policy: ServerPolicy
    hub: EventHub
    processing: ProcessorTask
    alarm_delivery: AlarmDeliveryTask
    background: BackgroundWork = field(default_factory=BackgroundWork)
    intake: IntakeTask | None = None
    receiver: Receiver | None = None
    judged: JudgedExecutions = field(default_factory=JudgedExecutions)
    scorings: Scorings = field(init=False)

    def __post_init__(self) -> None:
        self.scorings = Scorings(self.workspace)

    @property
    def store(self) -> SqlStore:
        return self.workspace.store

    @property
    def definitions(self) -> DefinitionService:
        return DefinitionService(self.workspace, from_api=True)


async def _studio(request: Request) -> Studio:
    return cast(Studio, request.app.state.studio)


StudioDep = Annotated[Studio, Depends(_studio)]


async def _access(request: Request) -> AccessControl:
    return cast(AccessControl, request.app.state.access)


AccessDep = Annotated[AccessControl, Depends(_access)]


class JsonAnswer(Response):
    """JSON that was written where it was read; the route declares its shape for the description alone."""

    media_type = "application/json"


class Paging(TypedDict):
    """Which part of a list to read."""

    cursor: str | None
    limit: int


async def _paging(
    cursor: Annotated[str | None, Query(max_length=200, description="Where the last page ended")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="The most items in one page")] = 50,
) -> Paging:
    return Paging(cursor=cursor, limit=limit)


PagingDep = Annotated[Paging, Depends(_paging)]


When = Annotated[datetime, AfterValidator(in_utc)]


class Period(TypedDict):
    """From when to when; the end itself is left out."""

    since: datetime | None
    until: datetime | None


async def _period(
    since: Annotated[When | None, Query(description="Made at this moment or later")] = None,
    until: Annotated[When | None, Query(description="Made before this moment")] = None,
) -> Period:
    return Period(since=since, until=until)


PeriodDep = Annotated[Period, Depends(_period)]
TextQuery = Annotated[str | None, Query(max_length=500, description="Part of the name")]

_VERSION = re.compile(r'(?:W/)?"v(\d{1,9})"')

ETAG: dict[str, Any] = {
    "headers": {
        "ETag": {"description": "The version, for If-Match", "schema": {"type": "string", "example": '"v3"'}}
    }
}


async def _expected_version(
    if_match: Annotated[
        str | None,
        Header(
            alias="If-Match",
            max_length=200,
            description="The ETag of what was read; refused with 412 if it has changed since",
            examples=['"v3"'],
        ),
    ] = None,
) -> int | None:
    """The version a caller insists on; none where any will do."""
    if if_match is None or if_match.strip() == "*":
        return None
    match = _VERSION.fullmatch(if_match.strip())
    if match is None:
        raise ApiError(412, 'If-Match names no version of this; send the ETag as it came, such as "v3".')
    return int(match[1])


ExpectedVersion = Annotated[int | None, Depends(_expected_version)]


async def _once(
    request: Request,
    idempotency_key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            min_length=1,
            max_length=200,
            description="A repeated request with the same key is carried out once",
        ),
    ] = None,
) -> IdempotencyKey | None:
    if idempotency_key is None:
        return None
    content = f"{request.method} {request.url.path}\n".encode() + await request.body()
    return IdempotencyKey(idempotency_key, hashlib.sha256(content).hexdigest())


def deleted_since(error: NotFound) -> ApiError:
    """A repeated request whose key stands for what is no longer there."""
    return ApiError(409, f"What this idempotency key made was deleted since: {error} Choose a new key.")


OnceDep = Annotated[IdempotencyKey | None, Depends(_once)]
