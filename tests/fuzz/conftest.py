"""The time that the fuzz tests have together: ten minutes, or EVALSTUDIO_FUZZ_SECONDS."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from tests.support.fuzzing import Budget

SHARES = {"evaluators": 0.4, "readers": 0.2, "routes": 0.4}


@pytest.fixture
def budget() -> Callable[[str], Budget]:
    total = float(os.environ.get("EVALSTUDIO_FUZZ_SECONDS", "600"))
    return lambda part: Budget(total * SHARES[part])
