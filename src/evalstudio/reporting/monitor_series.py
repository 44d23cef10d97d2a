"""The rate of a monitor over time, with what it rests on and its control limits; how the monitor stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from ..base.times import moment_of
from ..project.alarms import NOT_JUDGED, Alarm
from ..project.entities import Moment
from ..project.monitors import Monitor
from ..storage.monitoring import BucketCount
from .intervals import wilson_interval
from .monitoring import MonitorTest, control_limits
from .statistics import Figure, Rate

Standing = Literal["disabled", "learning", "in-band", "left-band", "unasserted", "too-low"]


class SeriesPoint(Figure):
    """The conversations of one stretch of time. Errors, unasserted and not judged ones are in no rate."""

    start: Moment
    rate: Rate
    errored: int = 0
    unasserted: int = 0
    not_judged: int = 0
    low_limit: float | None = Field(default=None, description="Below it the rate is hardly chance")
    high_limit: float | None = None


class MonitorSeries(Figure):
    """How a monitor stands, and its rate over time."""

    standing: Standing
    expected: float | None = Field(description="The expected rate; none while it is being learnt")
    edge: float | None = Field(
        description="The lower edge of the band, which the test holds the rate against"
    )
    learnt: int = Field(description="How many conversations the expected rate has been learnt from so far")
    learn_from: int
    evidence: float = Field(description="How near an alarm is, from 0 to 1")
    total: SeriesPoint
    points: list[SeriesPoint]
    judge_calls_today: int
    judge_calls_per_day: int | None
    alarms: list[Alarm] = Field(description="Those that are not over")


def series_points(counts: Iterable[BucketCount], expected: float | None) -> list[SeriesPoint]:
    """A point for each stretch of time in which there was a conversation, oldest first."""
    buckets: dict[int, dict[str, int]] = {}
    for one in counts:
        buckets.setdefault(one.start_ms, {})[one.outcome] = one.number
    return [_point(moment_of(start), numbers, expected) for start, numbers in sorted(buckets.items())]


def _point(start: datetime, numbers: Mapping[str, int], expected: float | None) -> SeriesPoint:
    passed = numbers.get("pass", 0)
    scored = passed + numbers.get("fail", 0)
    interval = wilson_interval(passed / scored if scored else 0.0, scored)
    limits = (None, None) if expected is None or not scored else control_limits(expected, scored)
    return SeriesPoint(
        start=start,
        rate=Rate(passed=passed, of=scored, low=interval.low, high=interval.high),
        errored=numbers.get("error", 0),
        unasserted=numbers.get("unasserted", 0),
        not_judged=numbers.get(NOT_JUDGED, 0),
        low_limit=limits[0],
        high_limit=limits[1],
    )


def monitor_series(
    monitor: Monitor,
    kept: Mapping[str, Any] | None,
    counts: list[BucketCount],
    *,
    since: datetime,
    judge_calls: int,
    alarms: list[Alarm],
) -> MonitorSeries:
    test = MonitorTest.read(kept, str((kept or {}).get("basis", "")))
    expected, rate_test = test.expected(monitor.band), test.rate_test(monitor.band)
    totals: dict[str, int] = {}
    for one in counts:
        totals[one.outcome] = totals.get(one.outcome, 0) + one.number
    return MonitorSeries(
        standing=_standing(monitor, test),
        expected=expected,
        edge=None if rate_test is None else rate_test.edge,
        learnt=test.learnt_scored,
        learn_from=monitor.band.learn_from,
        evidence=test.rate.evidence,
        total=_point(since, totals, expected),
        points=series_points(counts, expected),
        judge_calls_today=judge_calls,
        judge_calls_per_day=monitor.judge_calls_per_day,
        alarms=alarms,
    )


def _standing(monitor: Monitor, test: MonitorTest) -> Standing:
    if not monitor.enabled:
        return "disabled"
    if test.rate.excursion is not None or test.errors.excursion is not None:
        return "left-band"
    if test.silence.told:
        return "unasserted"
    if test.expected(monitor.band) is None:
        return "learning"
    return "too-low" if test.rate_test(monitor.band) is None else "in-band"
