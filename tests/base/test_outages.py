"""An operation is tried again while what it needs is out of reach, and no longer than allowed."""

from __future__ import annotations

import asyncio
import logging

import pytest

from evalstudio.base.outages import OutagePolicy, Unavailable, riding_out


class Service:
    """Fails so often, and notes what each try was told."""

    def __init__(self, failures: int, *, may_have_happened: bool = False) -> None:
        self.failures = failures
        self.tries: list[bool] = []
        self._may_have_happened = may_have_happened

    async def __call__(self, again: bool) -> str:
        self.tries.append(again)
        if len(self.tries) <= self.failures:
            error = Unavailable("gone")
            error.may_have_happened = self._may_have_happened
            raise error
        return "done"


async def test_without_patience_the_first_failure_is_told() -> None:
    service = Service(1)
    with pytest.raises(Unavailable):
        await OutagePolicy("database").persist(service)
    assert service.tries == [False]


async def test_within_riding_out_it_is_tried_until_it_works() -> None:
    service = Service(3)
    with riding_out(60):
        assert await OutagePolicy("database").persist(service) == "done"
    assert service.tries == [False] * 4


async def test_tasks_begun_while_riding_out_wait_too() -> None:
    with riding_out(60):
        task = asyncio.create_task(OutagePolicy("database").persist(Service(2)))
    assert await task == "done"


async def test_after_that_the_usual_patience_counts_again() -> None:
    with riding_out(60):
        pass
    with pytest.raises(Unavailable):
        await OutagePolicy("database").persist(Service(1))


async def test_a_try_is_told_when_an_earlier_one_may_have_been_carried_out() -> None:
    service = Service(2, may_have_happened=True)
    assert await OutagePolicy("database", 60).persist(service) == "done"
    assert service.tries == [False, True, True]


async def test_it_says_once_that_it_waits_and_once_that_it_is_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("evalstudio.base.outages._TELL_AFTER_SECONDS", 0.0)
    policy = OutagePolicy("database", 60)
    with caplog.at_level(logging.WARNING, "evalstudio"):
        await policy.persist(Service(3))
    assert [record.getMessage() for record in caplog.records] == [
        "gone Waiting up to 60 s for it.",
        "The database answers again.",
    ]
