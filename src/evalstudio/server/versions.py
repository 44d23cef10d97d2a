"""Headers that make edits and creates safe to repeat: ETag and If-Match, Idempotency-Key."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response

from ..storage.contract import Once
from .errors import ApiError

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
) -> Once | None:
    if idempotency_key is None:
        return None
    body = await request.body()
    told = f"{request.method} {request.url.path}\n".encode() + body
    return Once(idempotency_key, hashlib.sha256(told).hexdigest())


OnceDep = Annotated[Once | None, Depends(_once)]
