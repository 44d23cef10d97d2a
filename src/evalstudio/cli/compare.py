"""``evalstudio compare``: better or worse, and how sure that is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.text import counted, measure, percent, points
from .exit_codes import code_of
from .options import ConfigOption, JsonOption, ServerOption
from .output import print_json, print_table, say
from .project import Project, project_at, run_async
from .where import named_results

if TYPE_CHECKING:
    from ..execution.comparing import ComparisonRequest
    from ..reporting.comparison import (
        ComparedSide,
        ComparedSubject,
        ComparisonResult,
        Decision,
        MeasureDelta,
        SideRuns,
    )
    from ..reporting.requirements import Standing

_STANDINGS: dict[Decision, Standing] = {"none": "met", "regressed": "missed", "undecided": "undecided"}
_MOST_ROWS = 40
_MOST_MEASURES = 20

Which = "An execution's id, last, last~1, or a baseline's name; or a results file of score, also at s3://…/."


def compare(
    base: Annotated[str, typer.Argument(metavar="BASE", help=Which)],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="The same.")] = "last",
    connectors: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="BASE CANDIDATE", help="Compare two connectors of the execution BASE."),
    ] = None,
    eval_name: Annotated[str | None, typer.Option("--eval", help="The eval whose baseline is meant.")] = None,
    alpha: Annotated[
        float, typer.Option(min=0.0001, max=0.5, help="How often an unchanged agent may be called worse.")
    ] = 0.05,
    min_effect: Annotated[
        float,
        typer.Option(min=0, max=1, help="The smallest drop of the pass rate that counts: 0.05 is 5 points."),
    ] = 0.0,
    allow_gone: Annotated[
        bool, typer.Option("--allow-gone", help="Subjects of the base need not run in the candidate.")
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    server: ServerOption = None,
) -> None:
    """Compare two executions. Exit code: 0 no regression shown, 1 regression, 3 not decided."""
    earlier, later = named_results(base), named_results(candidate)
    if earlier is not None and later is not None:
        from ..execution.comparing_results import compare_results

        result = compare_results(earlier, later, alpha=alpha, min_effect=min_effect, allow_gone=allow_gone)
    else:
        # Two connectors of one execution: the execution is named once.
        second = base if connectors is not None and candidate == "last" else candidate

        async def work() -> ComparisonResult:
            from ..execution.comparing import ComparisonRequest

            asked = ComparisonRequest(base, second, None, connectors, alpha, min_effect, allow_gone)
            async with project_at(config, server) as project:
                return await _compared(project, asked, eval_name)

        result = run_async(work())
    if as_json:
        print_json(result.model_dump(mode="json", by_alias=True))
    else:
        print_comparison(result)
    raise typer.Exit(code_of(_STANDINGS[result.decision]))


async def _compared(project: Project, request: ComparisonRequest, eval_name: str | None) -> ComparisonResult:
    from .eval_start import find_eval

    eval_id = (await find_eval(project.records, eval_name)).id if eval_name else None
    return await project.compare(replace(request, eval_id=eval_id))


def print_comparison(result: ComparisonResult) -> None:
    """What regressed comes first, then the numbers, then what else changed."""
    say(f"base       {_side_text(result.base)}")
    say(f"candidate  {_side_text(result.candidate)}\n")
    _print_subjects(result)
    _print_measures(result)
    say(_counts_text(result))
    say(_overall_text(result))
    for change in result.changes:
        say(f"ran with another {change.text}")
    for note in result.notes:
        say(f"note: {note}")
    word = {"none": "no regression shown", "regressed": "REGRESSION", "undecided": "not decided"}
    reasons = "" if result.decision == "none" else f": {'; '.join(result.reasons)}"
    say(f"{word[result.decision]}{reasons}")


def _side_text(side: ComparedSide) -> str:
    from .runs import when

    labels = (f"{key}={value}" for key, value in side.labels.items() if key in ("branch", "commit", "dirty"))
    marks = [
        side.connector,
        side.partial and f"partial: {side.partial}",
        "replayed" if side.replayed else None,
        None if side.source == "live" else side.source,
    ]
    facts = [side.eval_name, when(side.created_at), *labels, *marks]
    rate = side.pass_rate
    passed = f"{rate.passed} of {rate.of} passed" if rate.of else "nothing scored"
    return f"{side.id} ({', '.join(fact for fact in facts if fact)}): {passed}"


def _print_subjects(result: ComparisonResult) -> None:
    rows = [
        (one.subject.label, one.category, f"{_runs(one.base)} → {_runs(one.candidate)}", _why(one))
        for one in result.subjects[:_MOST_ROWS]
    ]
    if rows:
        print_table("Subjects", ("Subject", "", "Passed", "What changed"), rows)
    left = len(result.subjects) - len(rows) + result.not_listed
    if left:
        say(f"and {left:,} more, listed by --json\n")


def _runs(side: SideRuns | None) -> str:
    if side is None or not side.runs:
        return "-"
    scored = side.passed + side.failed
    errors = f", {side.errored} errored" if side.errored else ""
    return (f"{side.passed}/{scored}" if scored else "none scored") + errors


def _why(subject: ComparedSubject) -> str:
    changed = dict.fromkeys(f"{one.what} ({one.name})" if one.name else one.what for one in subject.changes)
    known = f"changed: {', '.join(changed)}" if changed else ""
    if subject.category not in ("regressed", "flaky") or subject.drop is None:
        return known
    drop = subject.drop
    earlier = f"{drop.history_passed} of {drop.history_scored} before"
    words = {
        "beyond": f"more than its flakiness explains (p = {drop.adjusted_p:.2g}, {earlier})",
        "explained": f"no more than its flakiness explains ({earlier})",
        "unknown": f"too few runs to rule out chance ({earlier})",
        "none": "",
    }
    return "; ".join(part for part in (words[drop.verdict], known) if part)


def _print_measures(result: ComparisonResult) -> None:
    """Those that moved most surely; the rest is in the JSON."""
    moved = [one for one in result.measures if one.difference]
    shown = sorted(moved, key=lambda one: (one.adjusted_p or 0, one.kind, one.name))[:_MOST_MEASURES]
    if not shown:
        return
    columns = ("Measure", "Base", "Candidate", "Difference", "p")
    print_table("Measures", columns, map(_measure_row, shown))


def _measure_row(one: MeasureDelta) -> tuple[str, ...]:
    ends = (one.low, one.high)
    bounds = "" if None in ends else " ({:+.4g} to {:+.4g})".format(*ends)
    name = one.name if one.name == one.kind else f"{one.name} ({one.kind})"
    p = "-" if one.adjusted_p is None else f"{one.adjusted_p:.3g}"
    difference = f"{one.difference or 0:+.4g}{bounds}"
    return name, measure(one.base), measure(one.candidate), difference, p


def _counts_text(result: ComparisonResult) -> str:
    parts = [f"{number:,} {category}" for category, number in result.counts.items() if number]
    return f"subjects: {', '.join(parts) or 'none'}"


def _overall_text(result: ComparisonResult) -> str:
    overall = result.overall
    if overall.difference is None or overall.base is None or overall.candidate is None:
        return "pass rate: nothing to compare"
    interval = f"95% interval {points(overall.low)} to {points(overall.high)}"
    text = f"pass rate: {percent(overall.base)} → {percent(overall.candidate)}, "
    text += f"{points(overall.difference)} ({interval}), p = {overall.p:.3g} over "
    text += counted(overall.subjects, "subject")
    if overall.detectable is None:
        return f"{text}; so few subjects could not show any difference"
    return f"{text}; would show a difference of {overall.detectable * 100:.0f} points or more"
