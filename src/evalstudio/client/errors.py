"""What a server refuses, as an exception with its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from aiohttp import ClientResponse


class ServerError(Exception):
    """What a server refused, or could not do."""

    def __init__(
        self, status: int, code: str, message: str, details: list[dict[str, Any]] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code = status, code
        self.details = details or []


async def raise_refusal(response: ClientResponse) -> None:
    """Raise what a server has to say against a request."""
    if response.status < 400:
        return
    content = await response.read()
    try:
        error = orjson.loads(content)["error"]
        raise ServerError(response.status, error["code"], error["message"], error["details"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        text = content[:200].decode(errors="replace")
        raise ServerError(
            response.status, "unknown", f"{response.url} answered {response.status}: {text}"
        ) from None
