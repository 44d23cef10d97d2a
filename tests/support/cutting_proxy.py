"""A TCP proxy that cuts a connection the moment something has passed through it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class CuttingProxy:
    """Passes everything on. When armed, it lets the word reach the server, swallows the answer and cuts."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.armed: bytes | None = None
        self.cuts = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._port)
        back = asyncio.create_task(self._pass_back(server_reader, writer))
        try:
            while data := await reader.read(65536):
                if self.armed is not None and self.armed in data:
                    self.armed = None
                    self.cuts += 1
                    back.cancel()
                    await asyncio.gather(back, return_exceptions=True)
                    server_writer.write(data)
                    await server_writer.drain()
                    await server_reader.read(65536)
                    return
                server_writer.write(data)
                await server_writer.drain()
        except OSError:
            pass
        finally:
            back.cancel()
            server_writer.close()
            writer.close()

    async def _pass_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()


@asynccontextmanager
async def cutting_proxy(port: int) -> AsyncIterator[tuple[CuttingProxy, int]]:
    proxy = CuttingProxy(port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    try:
        yield proxy, server.sockets[0].getsockname()[1]
    finally:
        server.close()
