"""What a server refuses, as an exception with its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from aiohttp import ClientResponse


_LARGEST = 256 * 1024 * 1024
_PART = 1024 * 1024


class ServerError(Exception):
    """What a server refused, or could not do."""

    def __init__(
        self, status: int, code: str, message: str, details: list[dict[str, Any]] | None = None
    ) -> None:
        super().__init__("\n  ".join([message, *_places(message, details or [])]))
        self.status, self.code = status, code
        self.details = details or []


def _places(message: str, details: list[dict[str, Any]]) -> list[str]:
    """What is wrong where, if the message does not say so already."""
    told = [f"{one['path']}: {one['message']}" for one in details]
    return [] if len(told) == 1 and details[0]["message"] in message else told


async def read_limited(response: ClientResponse) -> bytes:
    """The body of an answer, unless it is larger than any answer of ours."""
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_chunked(_PART):
        size += len(part)
        if size > _LARGEST:
            raise ServerError(
                response.status, "too_large", f"{response.url} answered more than {_LARGEST:,} bytes"
            )
        parts.append(part)
    return b"".join(parts)


async def raise_refusal(response: ClientResponse) -> None:
    """Raise what a server has to say against a request."""
    if response.status < 300:
        return
    content = await read_limited(response)
    try:
        error = orjson.loads(content)["error"]
        raise ServerError(response.status, error["code"], error["message"], error["details"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        text = content[:200].decode(errors="replace")
        raise ServerError(
            response.status, "unknown", f"{response.url} answered {response.status}: {text}"
        ) from None
