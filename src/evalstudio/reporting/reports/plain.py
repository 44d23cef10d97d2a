"""A head and a run as plain data: what JSON, JSONL and CSV share."""

from __future__ import annotations

import math
from typing import Any

from ..intervals import Interval
from .model import ReportHead, ReportRun


def plain_interval(interval: Interval) -> dict[str, float | None]:
    """An interval as JSON holds it: an end that is not bounded is null."""
    ends = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
    return {
        name: value if value is not None and math.isfinite(value) else None for name, value in ends.items()
    }


def plain_head(head: ReportHead) -> dict[str, Any]:
    return {
        "title": head.title,
        "standing": head.standing,
        "facts": dict(head.facts),
        "notes": head.notes,
        "counts": head.counts.model_dump(mode="json", by_alias=True),
        "passRate": plain_interval(head.rate),
        "requirements": [one.model_dump(mode="json", by_alias=True) for one in head.requirements],
        "usage": [one.model_dump(mode="json", by_alias=True) for one in head.usage],
        "measures": [
            {"name": one.name, "n": one.runs, "mean": plain_interval(one.mean)} for one in head.measures
        ],
        "subjects": [
            {
                "label": one.label,
                "standing": one.word,
                "passed": one.passed,
                "failed": one.failed,
                "errored": one.errored,
                "unasserted": one.unasserted,
                "notRun": one.left,
                "reason": one.reason,
            }
            for one in sorted(head.subjects, key=lambda one: one.rank)
        ],
    }


def plain_run(run: ReportRun) -> dict[str, Any]:
    return {
        "id": run.id,
        "subject": run.label,
        "scenario": run.group,
        "case": run.case,
        "persona": run.persona,
        "connector": run.connector,
        "repetition": run.repetition,
        "attempt": run.attempt,
        "outcome": run.outcome,
        "fault": run.fault,
        "reason": run.reason,
        "score": run.score,
        "latencyMs": run.latency_ms,
        "tokens": run.tokens,
        "turns": run.turns,
        "metrics": run.metrics,
        "findings": [
            {"name": one.name, "result": one.word, "turn": one.turn, "reason": one.reason}
            for one in run.findings
        ],
    }
