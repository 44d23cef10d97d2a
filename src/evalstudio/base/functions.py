"""Functions of a project by name: ``module:function``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

FUNCTION_NAME = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"


def import_function(reference: str, folder: Path, error: Callable[[str], Exception]) -> Callable[..., Any]:
    """The function of an installed module, or of one in the project's folder."""
    module, _, name = reference.partition(":")
    place = str(folder)
    if place not in sys.path:
        # Last, so that the project's files shadow no installed module.
        sys.path.append(place)
    try:
        loaded = importlib.import_module(module)
    except Exception as failure:
        problem = f'the module "{module}" cannot be imported: {type(failure).__name__}: {failure}'
        raise error(problem) from failure
    function: Any = getattr(loaded, name, None)
    if not callable(function):
        raise error(f'the module "{module}" has no function "{name}"')
    return function
