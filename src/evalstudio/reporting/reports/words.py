"""The sentences that all reports share."""

from __future__ import annotations

from collections.abc import Mapping

from ...base.text import counted, percent, percents
from ...project.entities import Counts
from ..intervals import Interval
from ..statistics import Rate
from .model import ReportHead


def verdict(head: ReportHead) -> str:
    """What it came to, in a few words."""
    missed = sum(1 for one in head.requirements if one.standing == "missed")
    open_ones = sum(1 for one in head.requirements if one.standing == "undecided")
    if head.standing == "met":
        return "all requirements are met" if head.requirements else "passed"
    if head.standing == "missed":
        of = counted(len(head.requirements), "requirement")
        return f"{missed} of {of} missed" if head.requirements else "failed"
    if not open_ones:
        return "not decided"
    return f"not decided, {counted(open_ones, 'requirement')} {'is' if open_ones == 1 else 'are'} open"


def counts_text(counts: Counts, noun: str, faults: Mapping[str, int] | None = None) -> str:
    """How many came to what; errors with whose fault they were, where that is known."""
    whose = ", ".join(f"{count:,} {fault}" for fault, count in sorted((faults or {}).items()))
    errored = f"{counts.errored:,} errored" + (f" ({whose})" if whose else "")
    parts = [f"{counts.passed:,} passed", f"{counts.failed:,} failed", errored]
    if counts.unasserted:
        parts.append(f"{counts.unasserted:,} unasserted")
    if counts.left:
        parts.append(f"{counts.left:,} cancelled or not run")
    return f"{counted(counts.total, noun.removesuffix('s'))}: {', '.join(parts)}"


def rate_text(head: ReportHead) -> str:
    if head.rate.estimate is None:
        return f"unknown: no {head.noun} passed or failed"
    scored = head.counts.passed + head.counts.failed
    return share_text(head.rate.estimate, head.counts.passed, scored, head.rate)


def share_text(share: float, passed: int, of: int, ends: Interval | Rate) -> str:
    """A share with what it rests on."""
    return f"{percent(share)} ({passed:,} of {of:,}, 95% interval {percents(ends.low, ends.high)})"
