"""Modules that only some tests compare with, imported where they are used first.

Every process that collects the tests imports all test files: what takes a second there costs several.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Reference:
    """Stands for a module until something of it is used. Those it is for come without types."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        # pytest asks everything in a test file for its marks.
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)
