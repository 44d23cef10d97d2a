"""A small project, and a server over it that needs a token."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.support.api_server import Api, serving
from tests.support.projects import make_project, scripted

from evalstudio.server.policy import ServerPolicy

TOKEN = "a-token-nobody-guesses-0123456789"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with a test agent; its config file."""
    return make_project(tmp_path / "project", [scripted("hello", "hi there")])


@pytest.fixture
async def api(project: Path) -> AsyncGenerator[Api]:
    async with serving(project) as served:
        yield served


@pytest.fixture
async def guarded(project: Path) -> AsyncGenerator[Api]:
    async with serving(project, policy=ServerPolicy(token=TOKEN)) as served:
        yield served
