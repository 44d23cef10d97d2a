"""While much is made, what is loaded is left out of the search for garbage, and only then."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from evalstudio.base.garbage import searching_less


@pytest.fixture(autouse=True)
def own_thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_what_is_loaded_is_set_aside_and_taken_back() -> None:
    frozen = bool(gc.get_freeze_count())
    with searching_less():
        assert gc.get_freeze_count()
        assert gc.get_threshold() == (20_000, 10, 10)
        with searching_less():
            pass
        assert gc.get_freeze_count()
        assert gc.get_threshold() == (20_000, 10, 10)
    assert bool(gc.get_freeze_count()) == frozen
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("first", [0, 1_000_000])
def test_a_program_that_searches_still_less_keeps_it_so(first: int) -> None:
    gc.set_threshold(first, 10, 10)
    with searching_less():
        assert gc.get_threshold() == (first, 10, 10)
    assert gc.get_threshold() == (first, 10, 10)
