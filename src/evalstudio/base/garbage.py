"""The search for garbage in cycles, where much is made and hardly any of it stays."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def loaded_set_aside() -> Generator[None]:
    """Meanwhile, what is there by now is not looked through: modules, plugins and plans are no garbage.

    A program that has set something aside by itself keeps it so.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
