"""``evalstudio monitor``: standing reviews of production conversations, and how they stand."""

from __future__ import annotations

from .definitions import FieldOption, definition_app, joined

app = definition_app(
    "monitor",
    "a monitor",
    help="Monitors: standing reviews of sampled production conversations.",
    deleting="Delete a monitor with its series and alarms. Its executions stay.",
    columns=("Monitor", "Sampling", "Judged by", "Description"),
    row=lambda body: (
        body["name"],
        f"{body.get('samplingRate', 1.0):.0%}",
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
