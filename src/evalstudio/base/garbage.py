"""The search for garbage in cycles, where much is made and hardly any of it stays."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

# So many new objects before they are looked through: by then most are gone by themselves.
_NEW_OBJECTS = 20_000


@contextmanager
def searching_less() -> Generator[None]:
    """Meanwhile, what is there by now is not looked through, for modules and plans are no garbage, and the
    rest not as often.

    A program that has set something aside by itself, or searches still less or never, keeps it so.
    """
    first, *others = gc.get_threshold()
    frozen = gc.get_freeze_count()
    if not frozen:
        gc.freeze()
    if 0 < first < _NEW_OBJECTS:
        gc.set_threshold(_NEW_OBJECTS, *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)
        if not frozen:
            gc.unfreeze()
