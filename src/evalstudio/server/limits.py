"""A bound on request headers while they arrive, before there is a request to refuse."""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .errors import error_body
from .policy import LARGEST_HEADERS

_SLACK = 65_536


class BoundedHeaders(HttpToolsProtocol):
    """Closes a connection whose headers never end; those merely too large get a proper answer later."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._unfinished = 0

    def data_received(self, data: bytes) -> None:
        self._unfinished += len(data)
        super().data_received(data)
        if self._unfinished > LARGEST_HEADERS + _SLACK and not self.transport.is_closing():
            self._refuse()

    def on_headers_complete(self) -> None:
        self._unfinished = -(2**62)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._unfinished = 0
        super().on_message_complete()

    def _refuse(self) -> None:
        import orjson

        body = orjson.dumps(error_body(431, f"The headers are larger than {LARGEST_HEADERS:,} bytes."))
        head = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: application/json\r\n"
        self.transport.write(head + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        self.transport.close()
