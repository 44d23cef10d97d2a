"""While much is made, what is loaded is left out of the search for garbage, and only then."""

from __future__ import annotations

import gc

import pytest

from evalstudio.base.garbage import searching_less


def test_what_is_loaded_is_set_aside_and_taken_back() -> None:
    before = gc.get_threshold()
    with searching_less():
        assert gc.get_freeze_count()
        assert gc.get_threshold()[0] > before[0]
        with searching_less():
            pass
        assert gc.get_freeze_count()
        assert gc.get_threshold()[0] > before[0]
    assert not gc.get_freeze_count()
    assert gc.get_threshold() == before


@pytest.mark.parametrize("first", [0, 1_000_000])
def test_a_program_that_searches_still_less_keeps_it_so(first: int) -> None:
    before = gc.get_threshold()
    gc.set_threshold(first, 10, 10)
    try:
        with searching_less():
            assert gc.get_threshold() == (first, 10, 10)
        assert gc.get_threshold() == (first, 10, 10)
    finally:
        gc.set_threshold(*before)
