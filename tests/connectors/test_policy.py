"""The schedule of retries: pure functions of the policy, the agent's wish and chance."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalstudio.connectors.connection import CallPolicy, is_temporary


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


def test_only_too_many_requests_and_server_errors_pass_with_time():
    statuses = (200, 301, 400, 401, 404, 408, 409, 422, 429, 500, 502, 503, 504, 599)
    temporary = [status for status in statuses if is_temporary(status)]
    assert temporary == [429, 500, 502, 503, 504, 599]


def test_a_config_sets_its_own_limits():
    class Config:
        timeout_seconds = 600.0
        max_response_bytes = None

    policy = CallPolicy().for_config(Config())
    assert policy.timeout_seconds == 600.0
    assert policy.max_response_bytes == 10_000_000
    assert policy.whole_seconds == 600.0
    assert CallPolicy().for_config({}) == CallPolicy()
