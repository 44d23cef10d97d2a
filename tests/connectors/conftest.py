"""Shared by the tests of connectors: one pool per test, closed at its end."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.support.agent_server import AgentServer
from tests.support.langgraph_server import langgraph_url as langgraph_url

from evalstudio.connectors.http_pool import HttpPool


@pytest.fixture
async def pool() -> AsyncIterator[HttpPool]:
    async with HttpPool() as opened:
        yield opened


@pytest.fixture
async def agent() -> AsyncIterator[AgentServer]:
    async with AgentServer() as server:
        yield server
