"""Numbers over runs: rates with how many they cover and their interval, flakiness, what was slow.

An error is never a failure and never a pass: rates show passed of scored and passed of attempted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Z_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What statistics need to know of a run. Runs of one ``subject`` differ only in their repetition."""

    id: str
    subject: str
    outcome: str | None
    fault: str | None = None
    asserted: bool = True
    latency_ms: float | None = None
    tokens: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with what it rests on."""

    passed: int
    of: int
    low: float
    high: float

    @property
    def share(self) -> float | None:
        return self.passed / self.of if self.of else None

    def to_json(self) -> dict[str, Any]:
        return {"passed": self.passed, "of": self.of, "rate": self.share, "low": self.low, "high": self.high}


def wilson(passed: int, of: int, z: float = Z_95) -> tuple[float, float]:
    """The Wilson score interval of a share; nothing observed says nothing: 0 to 1."""
    if of == 0:
        return 0.0, 1.0
    share = passed / of
    denominator = 1 + z * z / of
    middle = (share + z * z / (2 * of)) / denominator
    reach = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / denominator
    low = 0.0 if passed == 0 else max(0.0, middle - reach)
    high = 1.0 if passed == of else min(1.0, middle + reach)
    return low, high


def rate(passed: int, of: int) -> Rate:
    return Rate(passed, of, *wilson(passed, of))


@dataclass(slots=True)
class ExecutionSummary:
    """What an execution came to."""

    runs: int = 0
    counts: dict[str, int] = field(default_factory=dict[str, int])
    faults: dict[str, int] = field(default_factory=dict[str, int])
    unasserted: int = 0
    of_scored: Rate = field(default_factory=lambda: rate(0, 0))
    of_attempted: Rate = field(default_factory=lambda: rate(0, 0))
    flaky: list[str] = field(default_factory=list[str])
    slowest: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    tokens: int = 0
    with_tokens: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "counts": self.counts,
            "errorsByFault": self.faults,
            "withoutAssertions": self.unasserted,
            "passRateOfScored": self.of_scored.to_json(),
            "passRateOfAttempted": self.of_attempted.to_json(),
            "flaky": self.flaky,
            "slowest": [{"subject": subject, "latencyMs": latency} for subject, latency in self.slowest],
            "tokens": self.tokens if self.with_tokens else None,
        }


def summarize(runs: Iterable[RunFacts], *, agent_errors_fail: bool = False) -> ExecutionSummary:
    """Count runs. Cancelled ones have no outcome and are in no rate."""
    counted = [_as_failure(run) if agent_errors_fail else run for run in runs]
    summary = ExecutionSummary(runs=len(counted))
    outcomes = Counter(run.outcome or "cancelled" for run in counted)
    summary.counts = {name: outcomes.get(name, 0) for name in ("pass", "fail", "error", "cancelled")}
    summary.faults = dict(Counter(run.fault or "system" for run in counted if run.outcome == "error"))
    summary.unasserted = sum(1 for run in counted if run.outcome == "pass" and not run.asserted)
    attempted = [run for run in counted if run.outcome is not None and run.asserted]
    scored = [run for run in attempted if run.outcome != "error"]
    passed = sum(1 for run in scored if run.outcome == "pass")
    summary.of_scored = rate(passed, len(scored))
    summary.of_attempted = rate(passed, len(attempted))
    summary.flaky = flaky_subjects(counted)
    timed = [(run.subject, run.latency_ms) for run in counted if run.latency_ms is not None]
    summary.slowest = sorted(timed, key=lambda item: -item[1])[:3]
    used = [run.tokens for run in counted if run.tokens is not None]
    summary.tokens, summary.with_tokens = sum(used), len(used)
    return summary


def _as_failure(run: RunFacts) -> RunFacts:
    if run.outcome == "error" and run.fault == "agent":
        return replace(run, outcome="fail", fault=None)
    return run


def flaky_subjects(runs: Sequence[RunFacts]) -> list[str]:
    """What passed in some repetitions and failed in others."""
    seen: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        if run.outcome in ("pass", "fail"):
            seen[run.subject].add(run.outcome)
    return sorted(subject for subject, outcomes in seen.items() if len(outcomes) == 2)
