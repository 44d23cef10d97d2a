"""Shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import settings
from tests.support.postgres import PostgresServer, running_postgres

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")
# Where the tests run must not show in what they make: a CI's variables become labels.
for variable in ("CI", "GITHUB_ACTIONS", "GITLAB_CI"):
    os.environ.pop(variable, None)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def storage(request: pytest.FixtureRequest) -> Callable[[], dict[str, Any]]:
    """The storage settings of a project: a SQLite file, or a new database on the private server."""
    if request.param == "sqlite":
        return lambda: {"type": "sqlite"}
    server: PostgresServer = request.getfixturevalue("postgres")
    return lambda: {"type": "postgres", "connectionString": server.new_project_database()}
