"""A typed client for a remote server: ``Client`` for plain code, ``AsyncClient`` for async code."""

from __future__ import annotations

from .asynchronous import AsyncClient, ServerError
from .blocking import Client

__all__ = ["AsyncClient", "Client", "ServerError"]
