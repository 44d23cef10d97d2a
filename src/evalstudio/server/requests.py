"""What every route has at hand: the open project, paging, versions and idempotency keys."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, cast

from fastapi import Depends, Header, Query, Request, Response
from pydantic import AfterValidator

from ..connectors.contract import ConnectorDefinition, ConnectorSettings
from ..project.entities import Connector, Stored, StoredConnector
from ..project.validation import check_connector
from ..storage.contract import IdempotencyKey, Store
from .errors import ApiError
from .policy import ServerPolicy

if TYPE_CHECKING:
    from ..execution.processor import ProcessorTask
    from ..execution.workspace import Workspace
    from .events import EventHub


@dataclass(slots=True)
class Studio:
    """An open project behind a server."""

    workspace: Workspace
    policy: ServerPolicy
    hub: EventHub
    processing: ProcessorTask

    @property
    def store(self) -> Store:
        return self.workspace.store


async def _studio(request: Request) -> Studio:
    return cast(Studio, request.app.state.studio)


StudioDep = Annotated[Studio, Depends(_studio)]

_OWN = set(Stored.model_fields)


def line_to(studio: Studio, kept: StoredConnector) -> tuple[ConnectorDefinition, ConnectorSettings[Any]]:
    workspace = studio.workspace
    fields = kept.model_dump(mode="json", by_alias=True, exclude=_OWN)
    connector = Connector.model_validate(workspace.box.open(fields))
    definition, config = check_connector(connector, workspace.registry)
    return definition, ConnectorSettings(config, connector.base_url or "", connector.headers, workspace.scope)


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

_VERSION = re.compile(r'(?:W/)?"v(\d{1,9})"')

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=200,
        description="The ETag of what was read; refused with 412 if it has changed since",
        examples=['"v3"'],
    ),
]
ETAG: dict[str, Any] = {
    "headers": {
        "ETag": {"description": "The version, for If-Match", "schema": {"type": "string", "example": '"v3"'}}
    }
}


def set_etag(response: Response, version: int) -> None:
    response.headers["ETag"] = f'"v{version}"'


def expected_version(if_match: str | None) -> int | None:
    """The version a caller insists on; none where any will do."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = _VERSION.fullmatch(if_match.strip())
    if found is None:
        raise ApiError(412, 'If-Match names no version of this; send the ETag as it came, such as "v3".')
    return int(found[1])


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
    body = await request.body()
    told = f"{request.method} {request.url.path}\n".encode() + body
    return IdempotencyKey(idempotency_key, hashlib.sha256(told).hexdigest())


OnceDep = Annotated[IdempotencyKey | None, Depends(_once)]
