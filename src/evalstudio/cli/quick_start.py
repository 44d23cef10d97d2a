"""What a command would do anyway while it starts, done sooner.

Most of what a short command takes is the making of the classes that libraries define.
"""

from __future__ import annotations

import sys
import typing
from functools import cache
from importlib import import_module
from typing import Any

from ..base.installed import may_declare

_typing: Any = typing


def start_quickly() -> None:
    """Before anything else is imported."""
    # Annotations are written as texts, thousands of them and most alike; each is compiled by itself.
    _typing.compile = cache(compile)
    _spare_pydantic_its_search()


def _spare_pydantic_its_search() -> None:
    """Say that it has no plugins where none is declared, which it finds out in ten times the time."""
    loader: Any = import_module("pydantic.plugin._loader")
    if getattr(loader, "_plugins", ()) is None and not any(
        may_declare(one, "[pydantic]") for one in sys.path
    ):
        loader._plugins = {}
