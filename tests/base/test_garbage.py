"""What is loaded is left out of the search for garbage while much is made, and only then."""

from __future__ import annotations

import gc

from evalstudio.base.garbage import loaded_set_aside


def test_what_is_loaded_is_set_aside_and_taken_back() -> None:
    with loaded_set_aside():
        assert gc.get_freeze_count()
        with loaded_set_aside():
            pass
        assert gc.get_freeze_count()
    assert not gc.get_freeze_count()
