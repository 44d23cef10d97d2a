"""How an execution is shown in the terminal: a row per subject, then the numbers with what they rest on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from .output import print_table, printable

if TYPE_CHECKING:
    from ..project.entities import Execution, RunSummary
    from ..reporting.statistics import Rate, Summary

_MOST_ROWS = 60


def print_runs(runs: Sequence[RunSummary]) -> None:
    """A row for every scenario, case, persona and connector; repetitions share one."""
    from ..execution.session import subject_of

    groups: dict[str, list[RunSummary]] = defaultdict(list)
    several = len({run.connector_name for run in runs}) > 1
    for run in runs:
        shown = run if several else run.model_copy(update={"connector_name": None})
        groups[subject_of(shown)].append(run)
    rows = [_row(subject, members) for subject, members in groups.items()]
    if len(rows) > _MOST_ROWS:
        rows.sort(key=lambda row: row[3] == "pass")
    print_table("Runs", ("Scenario", "Turns", "Latency", "Result"), [row[:4] for row in rows[:_MOST_ROWS]])
    if len(rows) > _MOST_ROWS:
        typer.echo(f"and {len(rows) - _MOST_ROWS:,} more, shown by: evalstudio run list\n")
    told = [(subject, reason) for subject, _, _, _, reason in rows[:_MOST_ROWS] if reason]
    for subject, reason in told:
        typer.echo(printable(f"{subject}\n    {reason}"))
    if told:
        typer.echo()


def _row(subject: str, runs: Sequence[RunSummary]) -> tuple[str, ...]:
    outcomes = [run.result.outcome if run.result else run.status for run in runs]
    worst = next((o for o in ("fail", "error", "cancelled", "running", "queued") if o in outcomes), "pass")
    result = worst if len(runs) == 1 else f"{outcomes.count('pass')} of {len(runs)} pass"
    telling = next(
        (run for run in runs if (run.result.outcome if run.result else run.status) == worst), runs[0]
    )
    latencies = [run.latency_ms for run in runs if run.latency_ms is not None]
    latency = milliseconds(sum(latencies) / len(latencies)) if latencies else "-"
    turns = "/".join(sorted({str(run.turn_count) for run in runs}))
    reason = telling.result.reason if telling.result and worst != "pass" else ""
    return subject, turns, latency, result, reason


def milliseconds(value: float) -> str:
    if value < 1:
        return "<1 ms"
    return f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:,.1f} s"


def print_summary(execution: Execution, summary: Summary) -> None:
    counts = summary.counts
    faults = ", ".join(f"{count} {fault}" for fault, count in sorted(summary.faults.items()))
    errors = f"{counts['error']} errored" + (f" ({faults})" if faults else "")
    parts = [f"{counts['pass']} passed", f"{counts['fail']} failed", errors]
    if counts["cancelled"]:
        parts.append(f"{counts['cancelled']} cancelled or not run")
    runs = "1 run" if summary.runs == 1 else f"{summary.runs:,} runs"
    typer.echo(f"{runs}: {', '.join(parts)}")
    typer.echo(f"pass rate: {rate_text(summary.of_scored)}{_beside(summary)}")
    if summary.unasserted:
        typer.echo(f"{summary.unasserted} passed with no assertions and are in no rate")
    if summary.flaky:
        typer.echo(f"flaky: {', '.join(summary.flaky)}")
    if summary.slowest and summary.runs > 1:
        slow = ", ".join(f"{subject} {milliseconds(latency)}" for subject, latency in summary.slowest)
        typer.echo(f"slowest: {slow}")
    if summary.with_tokens:
        typer.echo(
            f"agent tokens: {summary.tokens:,} (reported by {summary.with_tokens} of {summary.runs} runs)"
        )
    typer.echo(f"execution {execution.id}")


def _beside(summary: Summary) -> str:
    """The other reading of the rate, where errors make them differ."""
    if summary.of_scored == summary.of_attempted:
        return ""
    return f" of scored, {rate_text(summary.of_attempted)} of attempted"


def rate_text(rate: Rate) -> str:
    if rate.share is None:
        return "- (0 runs)"
    return f"{rate.share:.0%} ({rate.passed} of {rate.of}, 95% interval {rate.low:.0%}–{rate.high:.0%})"
