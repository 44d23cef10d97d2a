"""Compression of long answers; a stream would hold a compressor for as long as it lives, and has none."""

from __future__ import annotations

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import Receive, Scope, Send

STREAM = "/api/events"


class Compression(GZipMiddleware):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == STREAM:
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)
