"""Whether the rate of a monitor has left its band, asked after every conversation; and the rate over time.

The test is a Shiryaev-Roberts detector made of bets (an "e-detector"). A bet that the rate has fallen from
the `edge` of the band to `rate` pays, per conversation, rate / edge where it passed and
(1 - rate) / (1 - edge) where it failed. While the true rate is at the edge or above, no bet gains on average,
whenever it began. Before each conversation a stake is put on every bet:

    wealth = (wealth + stake) * payment        alarm when the wealth of all bets together reaches 1

If nothing has changed, wealth + number of alarms - sum of stakes does not grow on average, so the expected
number of alarms in any period is at most the sum of the stakes in it. The stake grows with the time since
the conversation before: over a month the stakes come to the false alarms that are allowed in a month, however
much or little traffic there is. No number of looks, no window and no normality enters.

Errors are watched by the same test, on whether a conversation could be judged at all. `docs/monitors.md` says
how soon a worse agent is noticed; the simulations of `tests/reporting/test_monitoring.py` hold it to that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from functools import lru_cache
from typing import Any, Literal

from ..base.lazy_dataclass import dataclass
from ..project.alarms import AlarmKind
from ..project.monitors import HIGHEST_RATE, AlarmSettings, Band
from .distributions import beta_cdf
from .intervals import wilson_interval

Change = Literal["left", "back"]
DAY_MS = 86_400_000
MONTH_MS = 30 * DAY_MS
# After a long silence one conversation alone must not be proof.
_LARGEST_STAKE = 0.002
_STEPS = (1, 2, 4, 8, 16)
_MOST_WEALTH = 1e9
# Being back in the band is shown by evidence of 20 to 1; a mistake only ends an alarm early.
_BACK = 20.0
_LEARNT_CONFIDENCE = 0.9
_LOWEST_EDGE = 0.01
# What lies outside three standard deviations of a normal value, on either side.
_OUTSIDE = 0.00135


@dataclass(frozen=True, slots=True)
class BandTest:
    """What one rate is held against: the lower edge of its band, and how often a mistake is allowed."""

    edge: float
    min_effect: float
    alarms_per_month: float


@lru_cache(maxsize=256)
def _payments(edge: float, min_effect: float) -> tuple[tuple[float, float], ...]:
    """What each bet pays after a pass and after a failure."""
    rates = [edge - step * min_effect for step in _STEPS if edge - step * min_effect > 0] or [edge / 2]
    return tuple((rate / edge, (1 - rate) / (1 - edge)) for rate in rates)


@dataclass(slots=True)
class RateWatch:
    """The test of one rate, and whether it is out of its band now.

    ``start`` is where the change is estimated to have begun (the conversation after it is the first of it),
    with how many were counted since. ``excursion`` is the position of the alarm while the rate is out.
    """

    wealth: list[float] = field(default_factory=list[float])
    last_ms: int | None = None
    start: int = 0
    scored: int = 0
    passed: int = 0
    score: float = 0.0
    excursion: int | None = None
    recovery: float = 1.0
    quiet_until_ms: int = 0

    @property
    def evidence(self) -> float:
        """How near an alarm is: from 0 to 1, where it is raised."""
        return min(1.0, sum(self.wealth))

    def add(
        self, test: BandTest, passed: bool, position: int, now_ms: int, quiet_ms: int = 0
    ) -> Change | None:
        """Add a conversation; says whether the rate has left its band by it, or is back."""
        elapsed = max(0, now_ms - self.last_ms) if self.last_ms is not None else 0
        self.last_ms = now_ms
        payments = _payments(test.edge, test.min_effect)
        self._locate(payments[0], passed, position)
        if self.excursion is not None:
            return self._look_for_return(payments[0], passed, now_ms, quiet_ms)
        stake = min(_LARGEST_STAKE, test.alarms_per_month * elapsed / MONTH_MS) / len(payments)
        if len(self.wealth) != len(payments):
            self.wealth = [0.0] * len(payments)
        self.wealth = [
            min(_MOST_WEALTH, (one + stake) * (after_pass if passed else after_failure))
            for one, (after_pass, after_failure) in zip(self.wealth, payments, strict=True)
        ]
        if sum(self.wealth) < 1 or now_ms < self.quiet_until_ms:
            return None
        self.excursion, self.recovery = position, 1.0
        return "left"

    def _locate(self, payment: tuple[float, float], passed: bool, position: int) -> None:
        """Where a change began, if there is one: at the last place where nothing spoke for it."""
        if self.score <= 1:
            self.start, self.scored, self.passed, self.score = position - 1, 0, 0, 1.0
        self.scored += 1
        self.passed += passed
        self.score = min(_MOST_WEALTH, self.score * payment[0 if passed else 1])

    def _look_for_return(
        self, payment: tuple[float, float], passed: bool, now_ms: int, quiet_ms: int
    ) -> Change | None:
        self.recovery = max(1.0, self.recovery) / payment[0 if passed else 1]
        if self.recovery < _BACK:
            return None
        self.wealth, self.excursion = [], None
        self.start, self.scored, self.passed, self.score = 0, 0, 0, 0.0
        self.quiet_until_ms = now_ms + quiet_ms
        return "back"


@dataclass(slots=True)
class Silence:
    """How many conversations in a row came to no verdict, and whether that was told.

    What came to an error is a matter of the share of errors and changes nothing here. What was not judged
    because a day's calls of judges were used up counts where a whole day has brought no verdict.
    """

    in_a_row: int = 0
    unasserted: int = 0
    since_ms: int = 0
    told: bool = False
    quiet_until_ms: int = 0

    def add(self, outcome: str, most: int, now_ms: int, quiet_ms: int) -> Change | None:
        if outcome in ("pass", "fail"):
            was_told, self.told = self.told, False
            self.in_a_row = self.unasserted = 0
            if was_told:
                self.quiet_until_ms = now_ms + quiet_ms
            return "back" if was_told else None
        if outcome == "error":
            return None
        if not self.in_a_row:
            self.since_ms = now_ms
        self.in_a_row += 1
        self.unasserted += outcome == "unasserted"
        a_day_long = self.in_a_row >= most and now_ms - self.since_ms > DAY_MS
        if self.told or now_ms < self.quiet_until_ms or not (self.unasserted >= most or a_day_long):
            return None
        self.told = True
        return "left"


@dataclass(frozen=True, slots=True)
class BandChange:
    """A rate that has left its band or is back, with what it was since it changed; verdicts likewise."""

    kind: AlarmKind
    change: Change
    position: int
    start: int
    passed: int
    scored: int
    edge: float

    @property
    def rate(self) -> float:
        return self.passed / self.scored if self.scored else 0.0


@dataclass(slots=True)
class MonitorTest:
    """Everything a monitor's tests know, as it is kept between conversations.

    ``basis`` says what they were made for: with another band, or other evaluators, they begin anew.
    """

    basis: str
    position: int = 0
    learnt_passed: int = 0
    learnt_scored: int = 0
    rate: RateWatch = field(default_factory=RateWatch)
    errors: RateWatch = field(default_factory=RateWatch)
    silence: Silence = field(default_factory=Silence)

    @classmethod
    def read(cls, kept: Mapping[str, Any] | None, basis: str) -> MonitorTest:
        """The tests as they were kept; new ones where there are none, or their basis was another."""
        if kept is None or kept.get("basis") != basis:
            return cls(basis)
        fields = dict[str, Any](kept)
        for name in ("rate", "errors"):
            fields[name] = RateWatch(**fields[name])
        # Tests that were kept by an earlier version have none.
        fields["silence"] = Silence(**fields.get("silence", {}))
        return cls(**fields)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def add_outcome(self, band: Band, alarm: AlarmSettings, outcome: str, now_ms: int) -> list[BandChange]:
        """Add what a conversation came to, whether or not it is in a rate."""
        quiet_ms, most = int(alarm.quiet_hours * 3_600_000), alarm.unasserted_in_a_row
        number = self.silence.in_a_row + 1
        change = self.silence.add(outcome, most, now_ms, quiet_ms)
        changes = self.add(band, outcome, now_ms, quiet_ms)
        if change is None:
            return changes
        return [BandChange("unasserted", change, self.position, self.position, 0, number, 0.0), *changes]

    def add(self, band: Band, outcome: str, now_ms: int, quiet_ms: int = 0) -> list[BandChange]:
        """Add the outcome of a conversation that was judged: pass, fail or error; others are in no rate."""
        if outcome not in ("pass", "fail", "error"):
            return []
        self.position += 1
        changes = [self._add("errors", self.errors, errors_test(band), outcome != "error", now_ms, quiet_ms)]
        if outcome != "error":
            passed = outcome == "pass"
            test = self.rate_test(band)
            if test is not None:
                changes.append(self._add("rate", self.rate, test, passed, now_ms, quiet_ms))
            elif band.expected is None and self.learnt_scored < band.learn_from:
                self.learnt_scored += 1
                self.learnt_passed += passed
        return [change for change in changes if change is not None]

    def _add(
        self,
        kind: AlarmKind,
        watch: RateWatch,
        test: BandTest,
        passed: bool,
        now_ms: int,
        quiet_ms: int,
    ) -> BandChange | None:
        start, number, good = watch.start, watch.scored + 1, watch.passed + passed
        change = watch.add(test, passed, self.position, now_ms, quiet_ms)
        if change is None:
            return None
        if change == "left":
            start, number, good = watch.start, watch.scored, watch.passed
        return BandChange(kind, change, self.position, start, good, number, test.edge)

    def expected(self, band: Band) -> float | None:
        """The rate that is expected; none while it is being learnt."""
        if band.expected is not None:
            return band.expected
        if self.learnt_scored < band.learn_from:
            return None
        return self.learnt_passed / self.learnt_scored

    def rate_test(self, band: Band) -> BandTest | None:
        """What the pass rate is held against; none while that is learnt, or if it cannot fall any further.

        A rate that was learnt is known only roughly: its band begins where it is still likely to be.
        """
        expected = self.expected(band)
        if expected is None:
            return None
        edge = expected
        if band.expected is None:
            edge = wilson_interval(expected, self.learnt_scored, _LEARNT_CONFIDENCE).low
        if edge < _LOWEST_EDGE:
            return None
        return BandTest(min(edge, HIGHEST_RATE), band.min_effect, band.false_alarms_per_month / 2)


def errors_test(band: Band) -> BandTest:
    """The share of conversations that could be judged, held against the share of errors that is expected."""
    effect = max(band.min_effect, band.max_error_rate)
    return BandTest(1 - band.max_error_rate, effect, band.false_alarms_per_month / 2)


@lru_cache(maxsize=4096)
def control_limits(expected: float, of: int) -> tuple[float, float]:
    """Between which rates so many conversations lie by chance alone, all but 27 times in 10,000."""
    if of <= 0:
        return 0.0, 1.0
    return _lowest(expected, of) / of, 1 - _lowest(1 - expected, of) / of


def _lowest(rate: float, of: int) -> int:
    """The smallest number of passes that is not rarer than what counts as outside."""
    low, high = 0, of
    while low < high:
        middle = (low + high) // 2
        if _at_most(middle, rate, of) > _OUTSIDE:
            high = middle
        else:
            low = middle + 1
    return low


def _at_most(passed: int, rate: float, of: int) -> float:
    """The chance of at most so many passes."""
    return 1.0 if passed >= of else 1 - beta_cdf(rate, passed + 1, of - passed)
