"""A run in the terminal: what was said, the verdicts under each turn, then what it all came to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .output import print_table, printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from ..messages import Message
    from ..project.entities import Run, Turn

_STYLES = {
    "pass": "green",
    "fail": "bold red",
    "error": "magenta",
    "pending": "dim",
    "skipped": "dim",
}
_LONGEST_ARGUMENTS = 2_000


def print_run(run: Run) -> None:
    """Everything there is to know of a run. Verdicts are words; colour only repeats them."""
    from rich.console import Console

    console = Console(highlight=False)
    _print_heading(console, run)
    for title, messages, turn in _turns(run):
        console.print()
        console.print(title, style="bold", markup=False)
        console.print(_said(messages))
        if turn is not None and (verdicts := [r for r in turn.evaluator_results if r["kind"] == "assertion"]):
            console.print(_verdicts(verdicts))
    console.print()
    _print_tables(run)


def _print_heading(console: Console, run: Run) -> None:
    from rich.text import Text

    from ..execution.session import subject_of

    outcome = run.result.outcome if run.result else run.status
    heading = Text.assemble(
        (printable(subject_of(run)), "bold"), ": ", (outcome, _STYLES.get(outcome, "bold"))
    )
    console.print(heading)
    console.print(Text(" · ".join(_facts(run)), "dim"))
    if run.result and run.result.reason:
        console.print(Text(printable(f"Reason: {run.result.reason}")))
    if run.error and (not run.result or run.error != run.result.reason):
        console.print(Text(printable(f"Error: {run.error}"), _STYLES["error"]))


def _facts(run: Run) -> Iterator[str]:
    from .execution_tables import milliseconds

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
        yield f"fault: {run.result.fault}"


def _turns(run: Run) -> Iterator[tuple[str, Sequence[Message], Turn | None]]:
    """The messages turn by turn; what no turn counts comes last."""
    said = list(run.messages)
    for turn in run.turns:
        count: int = (turn.model_extra or {}).get("messageCount", 0)
        yield _title(turn), said[:count], turn
        del said[:count]
    if said:
        yield "Unfinished turn", said, None


def _title(turn: Turn) -> str:
    from .execution_tables import milliseconds

    if turn.turn == 0:
        return "Before"
    more = [] if turn.latency_ms is None else [milliseconds(turn.latency_ms)]
    if turn.tokens_usage:
        more.append(f"{turn.tokens_usage.get('total_tokens', 0):,} tokens")
    return f"Turn {turn.turn}" + (f" ({', '.join(more)})" if more else "")


def _said(messages: Sequence[Message]) -> RenderableType:
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


def _verdicts(results: Sequence[Mapping[str, Any]]) -> RenderableType:
    from rich.text import Text

    grid = _grid(4, 7)
    for result in results:
        mark = mark_of(result)
        grid.add_row("", Text(mark, _STYLES[mark]), Text(printable(f"{_named(result)}: {result['reason']}")))
    return grid


def _grid(indent: int, width: int) -> Any:
    from rich.table import Table

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=indent - 1)
    grid.add_column(min_width=width, no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def mark_of(result: Mapping[str, Any]) -> str:
    """The verdict on one assertion, in a word."""
    if result.get("error") is not None:
        return "error"
    if result.get("skipped"):
        return "skipped"
    if result.get("pending"):
        return "pending"
    return "pass" if result["success"] else "fail"


def _named(result: Mapping[str, Any]) -> str:
    criterion = result.get("criterionName")
    return f"{result['name']} ({criterion})" if criterion else str(result["name"])


def _print_tables(run: Run) -> None:
    results: list[dict[str, Any]] = (run.output or {}).get("evaluatorResults") or []
    assertions = [r for r in results if r["kind"] == "assertion"]
    if assertions:
        rows = [
            (_named(r), r["gate"], mark_of(r), _number(r["value"]), str(r["turn"]), r["reason"])
            for r in assertions
        ]
        print_table("Assertions", ("Assertion", "Gate", "Verdict", "Score", "Turn", "Reason"), rows)
    metrics = [r for r in results if r["kind"] == "metric"]
    if metrics:
        print_table(
            "Metrics",
            ("Metric", "Value", "Last turn"),
            [(_named(r), _value(r), r["reason"]) for r in metrics],
        )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}"


def _value(result: Mapping[str, Any]) -> str:
    if result.get("error") is not None:
        return "error"
    more: dict[str, Any] = result.get("metadata") or {}
    return "missing" if more.get("missing") else _number(result["value"])
