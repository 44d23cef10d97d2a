"""The team's SDK can be imported, as it can where it is installed."""

from __future__ import annotations

import pytest

from .project import FOLDER


@pytest.fixture(autouse=True)
def booking_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("OPENAI_API_KEY", "k")
