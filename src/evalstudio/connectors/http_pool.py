"""One pooled HTTP client per event loop, with bounded answers and a check of every address it connects to.

It keeps no cookies (a run's are with its session), reads no proxy or netrc settings unless told to, and
follows no redirects: what a connector was given is all that is sent, and only to the address it was given.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..base.networks import AddressCheck, no_metadata

if TYPE_CHECKING:
    from aiohttp import ClientSession

_CONNECTIONS = 200


class HttpPool:
    """The clients of all sessions. Close it in the loop it was used in, or use it with ``async with``.

    ``address_check`` sees every IP address just before a connection to it is opened, after name resolution
    and for literal addresses alike; what it raises ends the call. Without one, the addresses under which
    clouds hand out the keys of a machine are refused. ``proxies`` go by the environment's settings.
    """

    def __init__(
        self, *, limit: int = _CONNECTIONS, address_check: AddressCheck | None = None, proxies: bool = False
    ) -> None:
        self._limit = limit
        self._proxies = proxies
        self._check = address_check or no_metadata()
        self._clients: dict[asyncio.AbstractEventLoop, ClientSession] = {}

    async def __aenter__(self) -> HttpPool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def client(self) -> ClientSession:
        """The running loop's client, opened when first asked for."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None or client.closed:
            self._clients = {known: c for known, c in self._clients.items() if not known.is_closed()}
            from .http_client import open_client

            client = open_client(self._limit, self._check, proxies=self._proxies)
            self._clients[loop] = client
        return client

    async def close(self) -> None:
        """Close the running loop's client; asking for it again opens a new one."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()
