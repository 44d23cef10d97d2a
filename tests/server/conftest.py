"""A project and a server over it, for the API tests."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.support.api_server import Api, serving
from tests.support.projects import make_project, scripted


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with a test agent; its config file."""
    return make_project(tmp_path / "project", [scripted("hello", "hi there")])


@pytest.fixture
async def api(project: Path) -> AsyncGenerator[Api]:
    async with serving(project) as served:
        yield served
