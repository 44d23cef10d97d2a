"""Shared by all tests."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from tests.support.postgres import PostgresServer, running_postgres

TESTS = Path(__file__).parent
# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")
# Thousands of tests are kept from their collection to the end: looking through them again and again for
# what nobody refers to takes a tenth of the time of all tests.
gc.set_threshold(20_000, 20, 20)
# Where the tests run must not show in what they make: a CI's variables become labels.
for variable in ("CI", "GITHUB_ACTIONS", "GITLAB_CI"):
    os.environ.pop(variable, None)


# What takes longest begins first, so that no process works alone at the end. Files that wait and files that
# compute take turns.
FIRST = (
    "cluster/test_ray.py",
    "e2e/test_tasks.py",
    "server/test_openapi.py",
    "hostile/test_bounds.py",
    "e2e/test_editing.py",
    "cli/test_signals.py",
    "e2e/test_accessibility.py",
    "scoring/test_resuming.py",
    "e2e/test_watching.py",
    "cli/test_saving.py",
    "execution/test_endings.py",
    "e2e/",
    "cluster/",
    "faults/",
    "hostile/",
    "server/",
    "execution/",
    "cli/",
    "storage/",
    "docs/",
    "production/",
    "scoring/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place(item.path.relative_to(TESTS).as_posix()))


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@cache
def _place(path: str) -> int:
    return next((place for place, start in enumerate(FIRST) if path.startswith(start)), len(FIRST))


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
