"""The sentences that all reports share."""

from __future__ import annotations

from ...base.text import percent
from ...project.entities import Counts
from .model import ReportHead


def verdict(head: ReportHead) -> str:
    """What it came to, in a few words."""
    missed = sum(1 for one in head.requirements if one.standing == "missed")
    open_ones = sum(1 for one in head.requirements if one.standing == "undecided")
    if head.standing == "met":
        return "all requirements are met" if head.requirements else "passed"
    if head.standing == "missed":
        return f"{missed} of {len(head.requirements)} requirements missed" if head.requirements else "failed"
    return f"not decided, {open_ones} requirements are open" if open_ones else "not decided"


def counts_text(counts: Counts, noun: str) -> str:
    parts = [f"{counts.passed:,} passed", f"{counts.failed:,} failed", f"{counts.errored:,} errored"]
    if counts.unasserted:
        parts.append(f"{counts.unasserted:,} unasserted")
    if left := counts.cancelled + counts.running + counts.queued:
        parts.append(f"{left:,} cancelled or not run")
    return f"{counts.total:,} {noun}: {', '.join(parts)}"


def rate_text(head: ReportHead) -> str:
    rate = head.rate
    if rate.estimate is None:
        return f"unknown: no {head.noun} passed or failed"
    scored = head.counts.passed + head.counts.failed
    ends = f"95% interval {percent(rate.low)}–{percent(rate.high)}"
    return f"{percent(rate.estimate)} ({head.counts.passed:,} of {scored:,}, {ends})"
