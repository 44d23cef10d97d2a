"""``evalstudio monitor``: standing reviews of production conversations, and how they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..base.text import percent
from .definitions import FieldOption, NameArgument, definition_app, joined
from .options import JsonOption
from .output import plain, print_json, say
from .project import LocalProject, Project, RemoteProject, on_project
from .runs import when

if TYPE_CHECKING:
    from ..project.entities import StoredMonitor
    from ..reporting.monitor_series import MonitorSeries

app = definition_app(
    "monitor",
    "a monitor",
    help="Monitors: standing reviews of sampled production conversations.",
    deleting="Delete a monitor with its series and alarms. Its executions stay.",
    columns=("Monitor", "Sampling", "Judged by", "Description"),
    row=lambda body: (
        body["name"],
        percent(body.get("samplingRate", 1.0)),
        joined(body.get("scenarios") or [one["type"] for one in body.get("evaluators", ())]),
        body.get("description") or "-",
    ),
    options=[
        FieldOption("--description", "description", "What is watched, in a few words."),
        FieldOption("--scenario", "scenarios", "Judge as this scenario judges.", list[str]),
        FieldOption("--sampling-rate", "samplingRate", "The share that is reviewed, 0 to 1.", float),
        FieldOption("--judge-calls-per-day", "judgeCallsPerDay", "The most calls of judges a day.", int),
    ],
)


@app.command("status")
@on_project
async def status(
    project: Project,
    target: NameArgument,
    days: Annotated[int, typer.Option(min=1, max=366, help="How far back.")] = 30,
    as_json: JsonOption = False,
) -> None:
    """Show how a monitor stands: its rate with the limits of chance, its band, and open alarms."""
    from ..execution.definitions import find, load_project_state

    state = await load_project_state(project.records)
    monitor: StoredMonitor = state.entity(find(state, "monitor", target).key)
    series = await _series(project, monitor, days)
    print_json(plain(series)) if as_json else _print(monitor.name, series, days)


async def _series(project: Project, monitor: StoredMonitor, days: int) -> MonitorSeries:
    from ..execution.monitor_status import read_series
    from ..reporting.monitor_series import MonitorSeries

    if isinstance(project, LocalProject):
        return await read_series(project.workspace.store, monitor, days=days, bucket="day")
    path = f"/api/monitors/{monitor.id}/series?days={days}"
    return MonitorSeries.model_validate(await cast(RemoteProject, project).client.call("GET", path))


_STANDINGS = {
    "disabled": "switched off",
    "in-band": "in its band",
    "left-band": "LEFT ITS BAND",
    "unasserted": "NOTHING IS ASSERTED of its conversations",
    "too-low": "the expected rate is so low that no drop can be told",
}


def _print(name: str, series: MonitorSeries, days: int) -> None:
    standing = _STANDINGS.get(series.standing, f"learning, {series.learnt:,} of {series.learn_from:,}")
    say(f"{name}: {standing}")
    total = series.total
    say(f"Last {days} days:  {_rate(total.rate.rate)}, {total.rate.passed:,} of {total.rate.of:,} passed")
    say(
        f"In no rate:    {total.errored:,} errored, {total.unasserted:,} unasserted, "
        f"{total.not_judged:,} not judged"
    )
    if series.expected is not None:
        edge = "" if series.edge is None else f", alarms below {percent(series.edge, 1)}"
        expected, evidence = percent(series.expected, 1), percent(series.evidence)
        say(f"Expected:      {expected}{edge}; evidence for a drop {evidence}")
    if series.judge_calls_per_day is not None:
        say(f"Judges today:  {series.judge_calls_today:,} of {series.judge_calls_per_day:,} calls")
    for point in series.points[-14:]:
        low, high = point.low_limit, point.high_limit
        limits = "" if low is None or high is None else f"  limits {percent(low)} to {percent(high)}"
        say(f"  {point.start:%Y-%m-%d}  {_rate(point.rate.rate):>6} of {point.rate.of:,}{limits}")
    for alarm in series.alarms:
        seen = " (acknowledged)" if alarm.acknowledged_at else ""
        say(f"ALARM {when(alarm.created_at)} UTC{seen}: {alarm.text}")
        say(f"  runs: {', '.join(alarm.run_ids[:5]) or 'none kept'}")


def _rate(rate: float | None) -> str:
    return "-" if rate is None else percent(rate, 1)
