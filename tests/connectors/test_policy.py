"""The schedule of retries: pure functions of the policy, the agent's wish and chance."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalstudio.connectors.connection import CallPolicy, RetrySettings


@given(st.integers(1, 50), st.none() | st.floats(0, 1e9), st.floats(0, 1))
def test_a_wait_is_never_negative_and_never_longer_than_the_cap(
    retry: int, asked: float | None, chance: float
):
    policy = CallPolicy()
    assert 0 <= policy.wait_before(retry, asked, chance) <= policy.longest_wait_seconds


def test_waits_double_and_are_spread_by_chance():
    policy = CallPolicy(backoff_seconds=1.0, jitter=0.5)
    assert [policy.wait_before(retry, None, 0) for retry in (1, 2, 3)] == [1.0, 2.0, 4.0]
    assert policy.wait_before(1, None, 1.0) == 1.5


@given(st.floats(0, 20), st.floats(0, 1))
def test_what_the_agent_asks_for_is_the_least_that_is_waited(asked: float, chance: float):
    assert CallPolicy().wait_before(1, asked, chance) >= asked


CAUSES = ("connect", "closed", "timeout", "400", "404", "408", "429", "500", "502", "503", "504", "599", None)


def repeated(policy: CallPolicy, retry_after: float | None = None) -> list[str | None]:
    return [cause for cause in CAUSES if policy.repeats_after(cause, retry_after)]


def test_by_default_only_what_cannot_have_reached_the_agent_or_what_it_asks_for_is_sent_again():
    assert repeated(CallPolicy()) == ["connect", "429"]
    assert repeated(CallPolicy(), 0.5) == ["connect", "429", "503"]


@pytest.mark.parametrize(
    ("on", "causes"),
    [
        ([], []),
        (["connect"], ["connect"]),
        (["timeout", "closed"], ["closed", "timeout"]),
        ([503], ["503"]),
        (["5xx", "408"], ["408", "500", "502", "503", "504", "599"]),
        (["4xx"], ["400", "404", "408", "429"]),
    ],
)
def test_what_is_sent_again_can_be_set(on: list[Any], causes: list[str]):
    policy = CallPolicy().with_retry({"on": on})
    assert repeated(policy) == causes
    assert repeated(policy, 1.0) == causes


def test_a_connector_that_says_that_it_is_safe_is_called_again_whatever_is_set():
    assert CallPolicy().with_retry({"on": []}).repeats_after(None, None, again=True)


@pytest.mark.parametrize(
    "retry",
    [{"attempts": 0}, {"attempts": 21}, {"on": ["sometimes"]}, {"on": ["200"]}, {"on": "429"}, {"tries": 3}],
)
def test_a_rule_that_means_nothing_is_refused(retry: dict[str, Any]):
    with pytest.raises(ValidationError):
        RetrySettings.model_validate(retry)


@given(st.floats(0, 1e6), st.floats(-10, 1e4))
def test_a_wait_that_is_asked_for_is_waited_or_named(asked: float, left: float):
    policy = CallPolicy()
    reason = policy.too_long(asked, left)
    assert bool(reason) == (asked >= left or asked > policy.longest_wait_seconds)
    assert reason == "" or f"asked to wait {asked:g} s" in reason


def test_a_longer_wait_can_be_allowed_and_has_the_time():
    policy = CallPolicy().with_retry({"longestWaitSeconds": 600})
    assert policy.too_long(500, policy.whole_seconds) == ""
    assert policy.wait_before(1, 500, 0.0) == 500


def test_a_config_sets_its_own_limits():
    class Config:
        timeout_seconds = 600.0
        max_response_bytes = None

    policy = CallPolicy().for_config(Config())
    assert policy.timeout_seconds == 600.0
    assert policy.max_response_bytes == 10_000_000
    assert policy.whole_seconds == 600.0
    assert CallPolicy().for_config({}) == CallPolicy()
