"""Whether a rate has left its band: what the docs promise, in simulation; and the limits of chance."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstudio.project.alarms import NOT_JUDGED
from evalstudio.project.monitors import AlarmSettings, Band
from evalstudio.reporting.monitoring import DAY_MS, MONTH_MS, MonitorTest, control_limits

# What docs/monitors.md promises: conversations a month, and within how many of them a drop from 95% to 85%
# is noticed in 19 of 20 cases.
PROMISED = [(3_000, 240), (30_000, 290), (300_000, 340)]
PROMISED_LEARNT = [(3_000, 550), (30_000, 680), (300_000, 780)]


def outcome(chance: random.Random, rate: float) -> str:
    return "pass" if chance.random() < rate else "fail"


def conversations_until_noticed(band: Band, traffic: int, chance: random.Random) -> int:
    """How many conversations at 85% it takes, after a while at 95%."""
    test, moment, step = MonitorTest("x"), 0, MONTH_MS // traffic
    for _ in range(200 if band.expected is not None else 200 + band.learn_from):
        moment += step
        test.add(band, outcome(chance, 0.95), moment)
    test.rate.excursion = None
    for number in range(1, 20_000):
        moment += step
        changes = test.add(band, outcome(chance, 0.85), moment)
        if any(one.kind == "rate" and one.change == "left" for one in changes):
            return number
    return 20_000


def share_noticed_in_time(band: Band, traffic: int, within: int, rounds: int) -> float:
    chance = random.Random(traffic)
    noticed = [conversations_until_noticed(band, traffic, chance) <= within for _ in range(rounds)]
    return sum(noticed) / rounds


@pytest.mark.parametrize(("traffic", "within"), PROMISED)
def test_a_drop_is_noticed_within_the_promised_number(traffic: int, within: int) -> None:
    assert share_noticed_in_time(Band(expected=0.95), traffic, within, 100) >= 0.9


@pytest.mark.soak
@pytest.mark.parametrize(("traffic", "within"), PROMISED)
def test_a_drop_is_noticed_in_2000_rounds(traffic: int, within: int) -> None:
    assert share_noticed_in_time(Band(expected=0.95), traffic, within, 2_000) >= 0.95


@pytest.mark.soak
@pytest.mark.parametrize(("traffic", "within"), PROMISED_LEARNT)
def test_a_drop_from_a_learnt_rate_is_noticed_in_2000_rounds(traffic: int, within: int) -> None:
    assert share_noticed_in_time(Band(), traffic, within, 2_000) >= 0.95


def false_alarms(band: Band, traffic: int, months: int, seed: int) -> int:
    test, chance, alarms = MonitorTest("x"), random.Random(seed), 0
    for number in range(traffic * months):
        word = "error" if chance.random() < 0.05 else outcome(chance, 0.95)
        changes = test.add(band, word, number * MONTH_MS // traffic)
        alarms += sum(one.change == "left" for one in changes)
    return alarms


def test_an_unchanged_agent_raises_no_more_false_alarms_than_allowed() -> None:
    # With so many allowed, chance hardly matters: at most 40 in 20 months are expected.
    band = Band(expected=0.95, false_alarms_per_month=2)
    assert sum(false_alarms(band, 600, 20, seed) for seed in range(5)) / 5 <= 40


@pytest.mark.soak
@pytest.mark.parametrize("band", [Band(expected=0.95, false_alarms_per_month=1), Band(learn_from=500)])
def test_an_unchanged_agent_in_2000_months(band: Band) -> None:
    alarms = sum(false_alarms(band, 3_000, 20, seed) for seed in range(100))
    assert alarms <= 2_000 * band.false_alarms_per_month


def test_one_excursion_is_one_alarm_and_ends_when_the_rate_is_back() -> None:
    band, test, chance, changes = Band(expected=0.95), MonitorTest("x"), random.Random(1), []
    for number, rate in enumerate([0.95] * 300 + [0.6] * 1_500 + [0.97] * 800):
        changes += [(number, one) for one in test.add(band, outcome(chance, rate), number * 60_000)]
    assert [(one.kind, one.change) for _, one in changes] == [("rate", "left"), ("rate", "back")]
    (left_at, left), (back_at, _) = changes
    assert 300 < left_at < 400
    assert back_at > 1_800
    # What it is about begins near the change, and is as bad as it was.
    assert 250 <= left.start <= 320
    assert left.rate < 0.85


def test_nothing_is_raised_again_in_the_quiet_hours_and_at_once_after_them() -> None:
    band, test, hour = Band(expected=0.95), MonitorTest("x"), 3_600_000
    changes: list[tuple[int, str]] = []
    words = ["pass"] * 50 + ["fail"] * 60 + ["pass"] * 400 + ["fail"] * 60
    for number, word in enumerate(words):
        found = test.add(band, word, number * 60_000, 24 * hour)
        changes += [(number, one.change) for one in found]
    assert [change for _, change in changes] == ["left", "back"]
    later = changes[-1][0] * 60_000 + 25 * hour
    assert [one.change for one in test.add(band, "fail", later, 24 * hour)] == ["left"]


def test_a_rise_of_errors_is_an_alarm_of_its_own_and_in_no_rate() -> None:
    band, test, changes = Band(expected=0.95), MonitorTest("x"), []
    for number in range(400):
        changes += test.add(band, "pass", number * 600_000)
    for number in range(400, 600):
        changes += test.add(band, "error" if number % 2 else "pass", number * 600_000)
    assert [(one.kind, one.change) for one in changes] == [("errors", "left")]
    assert test.rate.excursion is None


def test_what_is_not_judged_or_asserts_nothing_is_in_no_test() -> None:
    test = MonitorTest("x")
    for word in (NOT_JUDGED, "unasserted"):
        assert test.add(Band(expected=0.95), word, 1) == []
    assert test.position == 0


@pytest.mark.parametrize("times", [[0] * 200, [10**12] + [0] * 199, list(range(0, -200_000, -1_000))])
def test_clocks_that_stand_still_or_run_back_raise_nothing_by_themselves(times: list[int]) -> None:
    test = MonitorTest("x")
    assert not [one for at in times for one in test.add(Band(expected=0.95), "pass", at)]


def test_one_failure_after_a_year_of_silence_is_no_proof() -> None:
    test, band = MonitorTest("x"), Band(expected=0.95, false_alarms_per_month=100)
    test.add(band, "pass", 0)
    assert test.add(band, "fail", 12 * MONTH_MS) == []


def test_a_rate_that_cannot_fall_is_held_against_nothing() -> None:
    band, test = Band(learn_from=20), MonitorTest("x")
    for number in range(200):
        assert test.add(band, "fail", number * 60_000) == []
    assert test.expected(band) == 0
    assert test.rate_test(band) is None


def test_all_of_a_perfect_agent_are_expected_to_pass_and_one_failure_is_no_proof() -> None:
    band, test = Band(expected=1.0), MonitorTest("x")
    changes = [test.add(band, "fail" if number == 50 else "pass", number * 60_000) for number in range(99)]
    assert not any(changes)


def test_the_tests_are_kept_as_json_and_go_on_where_they_were() -> None:
    band, whole, kept = Band(expected=0.9), MonitorTest("x"), MonitorTest("x").to_json()
    for number in range(100):
        word = "fail" if number % 7 == 0 else "pass"
        whole.add(band, word, number * 1_000)
        test = MonitorTest.read(kept, "x")
        test.add(band, word, number * 1_000)
        kept = test.to_json()
    assert kept == whole.to_json()
    assert MonitorTest.read(kept, "another band").position == 0


@given(st.floats(0.01, 0.99), st.integers(1, 2_000))
def test_control_limits_lie_around_the_expected_rate(expected: float, of: int) -> None:
    low, high = control_limits(expected, of)
    assert 0 <= low <= high <= 1
    assert low <= expected + 1 / of
    assert high >= expected - 1 / of


def test_control_limits_agree_with_the_binomial_distribution() -> None:
    # 100 conversations at 95%: 87 or fewer pass in 0.15% of all cases, 86 or fewer in 0.04%.
    assert control_limits(0.95, 100) == (0.87, 1.0)
    assert control_limits(0.5, 0) == (0.0, 1.0)


def changes(outcomes: list[tuple[str, int]], **alarm: float) -> list[tuple[int, str]]:
    """What is told of verdicts that are missing, with the number of the conversation it is told at."""
    settings = AlarmSettings.model_validate({"unassertedInARow": 3, "quietHours": 0, **alarm})
    test, told = MonitorTest("x"), list[tuple[int, str]]()
    for number, (outcome_of_one, moment) in enumerate(outcomes, 1):
        test = MonitorTest.read(test.to_json(), "x")
        every = test.add_outcome(Band(), settings, outcome_of_one, moment)
        told += [(number, one.change) for one in every if one.kind == "unasserted"]
    return told


def at_once(*outcomes: str) -> list[tuple[str, int]]:
    return [(one, 0) for one in outcomes]


def test_conversations_in_a_row_without_a_verdict_are_told_once_and_when_that_is_over() -> None:
    silent = ["unasserted"] * 5
    assert changes(at_once(*silent, "fail", *silent)) == [(3, "left"), (6, "back"), (9, "left")]
    assert changes(at_once(*silent, "pass", *silent), quietHours=1) == [(3, "left"), (6, "back")]
    assert changes(at_once("unasserted", "unasserted", "pass", "unasserted", "unasserted")) == []


def test_errors_are_no_verdict_and_do_not_hide_that_there_is_none() -> None:
    assert changes(at_once("unasserted", "error", "unasserted", "error", "unasserted")) == [(5, "left")]
    assert changes(at_once(*["error"] * 9)) == []


def test_a_days_calls_that_are_used_up_are_told_where_a_whole_day_brought_no_verdict() -> None:
    assert changes(at_once(*[NOT_JUDGED] * 9)) == []
    days = [(NOT_JUDGED, number * DAY_MS // 2) for number in range(6)]
    assert changes(days) == [(4, "left")]


def test_tests_that_an_earlier_version_kept_go_on() -> None:
    kept = MonitorTest("x", position=7).to_json()
    del kept["silence"]
    assert MonitorTest.read(kept, "x").position == 7
