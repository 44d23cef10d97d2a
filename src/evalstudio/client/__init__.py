"""A typed client for a remote server: ``Client`` for plain code, ``AsyncClient`` for async code."""

from __future__ import annotations

from .answers import ServerError
from .asynchronous import AsyncClient
from .blocking import Client

__all__ = ["AsyncClient", "Client", "ServerError"]
