"""``evalstudio eval``: named sets of scenarios, and running them."""

from __future__ import annotations

from .definitions import FieldOption, definition_app, joined
from .eval_run import eval_run

app = definition_app(
    "eval",
    "an eval",
    help="Evals: sets of scenarios for one or more connectors.",
    deleting="Delete an eval. Its executions stay.",
    columns=("Eval", "Repetitions", "Connectors", "Scenarios"),
    row=lambda body: (
        body["name"],
        str(body.get("repetitions", 1)),
        joined(body["connectors"]),
        joined(body["scenarios"]),
    ),
    options=[
        FieldOption("--scenario", "scenarios", "May be repeated.", list[str]),
        FieldOption("--connector", "connectors", "May be repeated.", list[str]),
        FieldOption("--repetitions", "repetitions", "How often each combination runs.", int),
    ],
)
app.command("run")(eval_run)
