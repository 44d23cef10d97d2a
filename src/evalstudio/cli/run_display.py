"""Executions and runs in the terminal: tables, numbers with what they rest on, transcripts with verdicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

from ..base.text import measure, milliseconds, printable
from .output import open_console, print_table

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from ..evaluators.results import Finding, Turn
    from ..messages import Message
    from ..project.entities import Execution, Run, RunSummary
    from ..reporting.requirements import RequirementResult
    from ..reporting.statistics import ExecutionSummary, Rate

_STYLES = {
    "pass": "green",
    "fail": "bold red",
    "error": "magenta",
    "pending": "dim",
    "unasserted": "yellow",
    "skipped": "dim",
}
_LONGEST_ARGUMENTS = 2_000


def print_run(run: Run, *, debug: bool = False) -> None:
    """Everything there is to know of a run. Verdicts are words; colour only repeats them.

    With ``debug`` also the tracebacks of errors.
    """
    from rich.text import Text

    console = open_console(highlight=False)
    _print_heading(console, run)
    for turn in run.turns:
        console.print()
        console.print(_title(turn), style="bold", markup=False)
        console.print(_transcript(turn.all_messages))
        for line in _attempts(turn):
            console.print(Text(printable(f"    {line}"), "dim"))
        if turn.redacted:
            console.print(Text(printable(f"    {_redacted(turn)}"), _STYLES["fail"]))
        if assertions := [finding for finding in turn.results if finding.kind == "assertion"]:
            console.print(_verdicts(assertions))
    console.print()
    _print_tables(run)
    if printed := (run.output or {}).get("log"):
        console.print("Log", style="bold")
        console.print(printable(printed).rstrip(), markup=False)
    if debug:
        _print_debug(console, run)
    elif any(_tracebacks(run)):
        typer.echo("Tracebacks are shown by: evalstudio run show --debug")


def _tracebacks(run: Run) -> Iterator[tuple[str, str]]:
    """The tracebacks kept with a run, each once, with what they belong to."""
    if trace := (run.output or {}).get("traceback"):
        yield "Traceback", trace
    seen: set[str] = set()
    for turn in run.turns:
        for finding in turn.results:
            if finding.traceback and finding.traceback not in seen:
                seen.add(finding.traceback)
                yield f"Traceback of {_named(finding)}, turn {finding.turn}", finding.traceback


def _print_debug(console: Console, run: Run) -> None:
    from rich.text import Text

    for title, text in _tracebacks(run):
        console.print(Text(printable(title), "bold"))
        console.print(Text(printable(text)), soft_wrap=True)
        console.print()


def _print_heading(console: Console, run: Run) -> None:
    from rich.text import Text

    from ..project.entities import Subject

    outcome = run.standing
    heading = Text.assemble(
        (printable(Subject.of(run).label), "bold"), ": ", (outcome, _STYLES.get(outcome, "bold"))
    )
    console.print(heading)
    console.print(Text(" · ".join(_facts(run)), "dim"))
    if run.result and run.result.reason:
        console.print(Text(printable(f"Reason: {run.result.reason}")))
    if run.error and (not run.result or run.error != run.result.reason):
        console.print(Text(printable(f"Error: {run.error}"), _STYLES["error"]))


def _facts(run: Run) -> Iterator[str]:
    yield f"run {run.id}"
    yield f"execution {run.execution_id}"
    if run.repetition > 1:
        yield f"repetition {run.repetition}"
    if run.attempt > 1:
        yield f"attempt {run.attempt}"
    if run.started_at:
        yield f"{run.started_at:%Y-%m-%d %H:%M:%S} UTC"
    if run.latency_ms is not None:
        yield milliseconds(run.latency_ms)
    if run.total_tokens is not None:
        yield f"{run.total_tokens:,} tokens"
    if run.result and run.result.fault:
        yield f"fault of the {run.result.fault}"
    if run.result and run.result.score is not None:
        yield f"score {measure(run.result.score)}"
    if run.result and run.result.overall_score is not None:
        yield f"criteria {measure(run.result.overall_score)}"
    if run.ending:
        yield run.ending


def _title(turn: Turn) -> str:
    if turn.number == 0:
        return "Before"
    more = [] if turn.latency_ms is None else [milliseconds(turn.latency_ms)]
    if turn.first_token_ms is not None:
        more.append(f"first token after {milliseconds(turn.first_token_ms)}")
    if turn.tokens_usage:
        more.append(f"{turn.tokens_usage.total_tokens:,} tokens")
    elif turn.usage_missing:
        more.append(f"tokens missing: {turn.usage_missing}")
    return f"Turn {turn.number}" + (f" ({', '.join(more)})" if more else "")


def _redacted(turn: Turn) -> str:
    """That the agent gave a secret away, and where it stood."""
    return f"secrets were taken out of this answer: {', '.join(turn.redacted or ())}"


def _attempts(turn: Turn) -> Iterator[str]:
    """What was tried before the agent answered, and how long was waited in between."""
    for attempt in turn.attempts or ():
        asked = f", as the agent asked ({attempt.retry_after:g} s)" if attempt.retry_after else ""
        waited = f"; waited {milliseconds(attempt.wait_ms)}{asked}" if attempt.wait_ms else ""
        yield f"attempt {attempt.number}: {attempt.error or 'answered'}{waited}"


def _transcript(messages: Sequence[Message]) -> RenderableType:
    from rich.text import Text

    grid = _grid(2, 9)
    for message in messages:
        for place, line in enumerate(_lines(message)):
            grid.add_row("", Text(printable(message.role) if place == 0 else "", "cyan"), line)
    return grid


def _lines(message: Message) -> Iterator[RenderableType]:
    from rich.text import Text

    calls = message.tool_calls or ()
    if message.text or not calls:
        yield Text(printable(message.text))
    for call in calls:
        arguments = call.function.arguments[:_LONGEST_ARGUMENTS]
        yield Text.assemble("calls ", (printable(call.name), "bold"), " ", printable(arguments))


def _verdicts(findings: Sequence[Finding]) -> RenderableType:
    from rich.text import Text

    grid = _grid(4, 7)
    for finding in findings:
        line = printable(f"{_named(finding)}: {finding.reason}")
        grid.add_row("", Text(finding.word, _STYLES[finding.word]), Text(line))
    return grid


def _grid(indent: int, width: int) -> Any:
    from rich.table import Table

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=indent - 1)
    grid.add_column(min_width=width, no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def _named(finding: Finding) -> str:
    name = f"{finding.name} ({finding.criterion_name})" if finding.criterion_name else finding.name
    return f"{name}, rule {finding.rule}" if finding.rule else name


def _print_tables(run: Run) -> None:
    findings = (run.output or {}).get("evaluatorResults") or []
    assertions = [
        (_named(f), f.gate, f.word, _score(f), str(f.turn), f.reason)
        for f in findings
        if f.kind == "assertion"
    ]
    if assertions:
        print_table("Assertions", ("Evaluator", "Gate", "Result", "Score", "Turn", "Reason"), assertions)
    metrics = [(_named(f), _value(f), f.reason) for f in findings if f.kind == "metric"]
    if metrics:
        print_table("Metrics", ("Metric", "Value", "Reason"), metrics)


def _score(finding: Finding) -> str:
    """The score of an assertion, with the least it needs where it has one."""
    needed = "" if None in (finding.threshold, finding.value) else f" (needs {measure(finding.threshold)})"
    return measure(finding.value) + needed


def _value(finding: Finding) -> str:
    """The value of a metric with its unit; what could not be measured is missing, never nothing."""
    if finding.error is not None:
        return "error"
    if finding.missing or finding.value is None:
        return "missing"
    return f"{measure(finding.value)} {finding.unit or ''}".rstrip()


_MOST_ROWS = 60
_WORST_FIRST = ("fail", "error", "cancelled", "running", "queued", "pass", "unasserted")


def print_runs(runs: Sequence[RunSummary]) -> None:
    """A row for every scenario, case, persona and connector; repetitions share one."""
    from ..project.entities import Subject

    groups: dict[str, list[RunSummary]] = defaultdict(list)
    several = len({run.connector_name for run in runs}) > 1
    for run in runs:
        named = run if several else run.model_copy(update={"connector_name": None})
        groups[Subject.of(named).label].append(run)
    rows = [_run_row(subject, members) for subject, members in groups.items()]
    if len(rows) > _MOST_ROWS:
        rows.sort(key=lambda row: row[3] == "pass")
    print_table("Runs", ("Scenario", "Turns", "Latency", "Result"), [row[:4] for row in rows[:_MOST_ROWS]])
    if len(rows) > _MOST_ROWS:
        typer.echo(f"and {len(rows) - _MOST_ROWS:,} more, shown by: evalstudio run list\n")
    reasons = [(subject, reason) for subject, _, _, _, reason in rows[:_MOST_ROWS] if reason]
    for subject, reason in reasons:
        typer.echo(printable(f"{subject}\n    {reason}"))
    if reasons:
        typer.echo()


def _run_row(subject: str, runs: Sequence[RunSummary]) -> tuple[str, ...]:
    outcomes = [run.standing for run in runs]
    worst = next(word for word in _WORST_FIRST if word in outcomes)
    result = worst if len(runs) == 1 else _repeated(outcomes)
    shown = next(run for run in runs if run.standing == worst)
    latencies = [run.latency_ms for run in runs if run.latency_ms is not None]
    latency = milliseconds(sum(latencies) / len(latencies)) if latencies else "-"
    turns = "/".join(sorted({str(run.turn_count) for run in runs}))
    reason = shown.result.reason if shown.result and worst != "pass" else ""
    return subject, turns, latency, result, reason


def _repeated(outcomes: Sequence[str]) -> str:
    """Repetitions in words; an unasserted one is not among those that could have passed."""
    unasserted = outcomes.count("unasserted")
    passed = f"{outcomes.count('pass')} of {len(outcomes) - unasserted} pass"
    return f"{passed}, {unasserted} unasserted" if unasserted else passed


def print_summary(execution: Execution, summary: ExecutionSummary) -> None:
    from ..reporting.reports.words import counts_text
    from ..reporting.spending import spending_lines

    counts = summary.counts
    typer.echo(counts_text(counts, "runs", summary.errors_by_fault))
    typer.echo(f"pass rate: {_rate_text(summary.pass_rate_of_scored)}{_beside(summary)}")
    if counts.unasserted:
        typer.echo(f"{counts.unasserted} unasserted: no assertion held or failed, so they are in no rate")
    if summary.flaky:
        flaky = (f"{one.subject.label} ({one.passed} passed, {one.failed} failed)" for one in summary.flaky)
        typer.echo(printable(f"flaky: {', '.join(flaky)}"))
    if summary.slowest and counts.total > 1:
        slow = (f"{one.subject.label} {milliseconds(one.latency_ms)}" for one in summary.slowest)
        typer.echo(printable(f"slowest: {', '.join(slow)}"))
    for line in spending_lines(summary.usage):
        typer.echo(line)
    if execution.replayed:
        typer.echo("replayed from a recording; it is in no trend and no default baseline")
    if execution.rescored_from:
        typer.echo(f"the conversations of execution {execution.rescored_from}, scored again")
    elif execution.source != "live":
        typer.echo(f"{execution.source} conversations; they are in no trend of live ones")
    if labels := labels_text(execution):
        typer.echo(printable(f"labels: {labels}"))
    typer.echo(f"execution {execution.id}")


def print_requirements(results: Sequence[RequirementResult], notes: Sequence[str] = ()) -> None:
    """What is required and what became of it, the worst first; nothing where nothing is required."""
    from ..reporting.requirements import worst_first

    for note in notes:
        typer.echo(printable(note))
    for one in worst_first(results):
        typer.echo(printable(f"{one.standing}: {one.requirement}\n    {one.evidence}"))


def _beside(summary: ExecutionSummary) -> str:
    """The other reading of the rate, where errors make them differ."""
    if summary.pass_rate_of_scored == summary.pass_rate_of_attempted:
        return ""
    return f" of scored, {_rate_text(summary.pass_rate_of_attempted)} of attempted"


def _rate_text(rate: Rate) -> str:
    from ..reporting.reports.words import share_text

    return "- (0 runs)" if rate.rate is None else share_text(rate.rate, rate.passed, rate.of, rate)


_LONGEST_LABEL = 40


def labels_text(execution: Execution) -> str:
    """The labels in one line; a commit by its first characters."""
    texts = {key: str(value) for key, value in execution.labels.items() if key != "ciUrl"}
    if len(texts.get("commit", "")) == 40:
        texts["commit"] = texts["commit"][:10]
    return ", ".join(f"{key}={value[:_LONGEST_LABEL]}" for key, value in texts.items())
