"""What a server answers: bounded, and its refusals as errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson

from ..base.outages import Unavailable
from ..base.problems import Problem

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_LARGEST = 256 * 1024 * 1024
_PART = 1024 * 1024


class ServerError(Exception):
    """What a server refused, or could not do."""

    def __init__(self, status: int, code: str, message: str, details: Sequence[dict[str, Any]] = ()) -> None:
        problems = [Problem(one["message"], (one["path"],), one.get("hint", "")) for one in details]
        # The message names the first problem already.
        super().__init__("\n  ".join([message, *(map(str, problems) if len(problems) > 1 else ())]))
        self.status, self.code, self.details = status, code, list(details)


class ServerUnreachable(ServerError, Unavailable):
    """The server cannot be reached, or is starting or stopping."""

    def __init__(self, url: str, reason: str) -> None:
        message = f"{url} cannot be reached ({reason}); is evalstudio serve running there?"
        super().__init__(0, "unreachable", message)


async def read_limited(response: ClientResponse) -> bytes:
    """The body of an answer, unless it is larger than any answer of ours."""
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_chunked(_PART):
        size += len(part)
        if size > _LARGEST:
            message = f"{response.url} answered more than {_LARGEST:,} bytes"
            raise ServerError(response.status, "too_large", message)
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
        text = f"{response.url} answered {response.status}: {content[:200].decode(errors='replace')}"
        raise ServerError(response.status, "unknown", text) from None
