"""The sentences that all reports share."""

from __future__ import annotations

from ...base.text import counted, percent
from ...project.entities import Counts
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


def counts_text(counts: Counts, noun: str) -> str:
    parts = [f"{counts.passed:,} passed", f"{counts.failed:,} failed", f"{counts.errored:,} errored"]
    if counts.unasserted:
        parts.append(f"{counts.unasserted:,} unasserted")
    if left := counts.cancelled + counts.running + counts.queued:
        parts.append(f"{left:,} cancelled or not run")
    return f"{counted(counts.total, noun.removesuffix('s'))}: {', '.join(parts)}"


def rate_text(head: ReportHead) -> str:
    rate = head.rate
    if rate.estimate is None:
        return f"unknown: no {head.noun} passed or failed"
    scored = head.counts.passed + head.counts.failed
    ends = f"95% interval {percent(rate.low)}–{percent(rate.high)}"
    return f"{percent(rate.estimate)} ({head.counts.passed:,} of {scored:,}, {ends})"
