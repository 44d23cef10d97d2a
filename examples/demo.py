"""A recorded conversation of three turns, looked at by built-in evaluators and one of our own.

Run it with ``make demo``. No key is needed. The toxicity check is planted to fail: the agent loses its
temper in the last turn, and the verdict has to say so.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from evalstudio import Message, TokensUsage, load_plugins
from evalstudio.evaluators.aggregate import Verdict, conclude, due, mark_pending
from evalstudio.evaluators.contract import Invocation, ScenarioInfo, TurnFacts
from evalstudio.evaluators.definition import Entry, with_keys
from evalstudio.evaluators.running import Finding, run_turn

CONVERSATION = [
    ("Hi, I would like to return my headphones.", "Hello! Gladly. What is your order number?", 640, 48),
    ("It is A-1042.", "Thank you. Order A-1042 can be returned until Friday.", 910, 61),
    ("And who pays for the parcel?", "We do. Only an idiot would ask: the label is in the box.", 720, 70),
]

EVALUATORS: list[dict[str, Any]] = [
    {"type": "greeting-check"},
    {"type": "latency-budget", "config": {"maxMs": 2000}},
    {"type": "regex", "config": {"pattern": r"returned until \w+day"}},
    {"type": "keyword-coverage", "config": {"expectedKeywords": ["label", "box"]}},
    {"type": "toxicity", "config": {"toxicTerms": ["idiot", "stupid"]}},
    {"type": "token-usage"},
    {"type": "latency"},
]


def chosen() -> list[Entry]:
    """The entries above, read by their evaluators; ``greeting-check`` comes from the plugin."""
    registry = load_plugins(Path(__file__).parent / "greeting" / "evalstudio.config.json")
    entries: list[Entry] = []
    for item in EVALUATORS:
        definition = registry.get_evaluator(item["type"])
        assert definition is not None, item["type"]
        entries.append(definition.use(item.get("config")))
    return with_keys(entries)


def recorded() -> list[TurnFacts]:
    """What evaluators see after each turn."""
    messages: list[Message] = []
    invocations: list[Invocation] = []
    facts: list[TurnFacts] = []
    for turn, (user, agent, latency_ms, tokens) in enumerate(CONVERSATION, start=1):
        reply = Message(role="assistant", content=agent)
        messages += [Message(role="user", content=user), reply]
        usage = TokensUsage(input_tokens=tokens, output_tokens=len(agent.split()))
        invocations.append(Invocation(latency_ms, [reply], usage))
        facts.append(
            TurnFacts(
                messages=list(messages),
                last_invocation=invocations[-1],
                invocations=list(invocations),
                turn=turn,
                is_final=turn == len(CONVERSATION),
                scenario=ScenarioInfo("Returning headphones"),
            )
        )
    return facts


async def evaluate(entries: list[Entry]) -> Verdict:
    """Every turn by the evaluators that are due then, and the final ones once at the end."""
    turns: list[list[Finding]] = []
    for facts in recorded():
        results = await run_turn(due(entries, turns), facts)
        mark_pending(results)
        turns.append(results)
    last = recorded()[-1]
    turns[-1] += await run_turn([entry for entry in entries if entry.gate == "finally"], last)
    return conclude(entries, turns, last.criteria)


def show(entries: list[Entry], verdict: Verdict) -> None:
    console = Console(highlight=False)
    console.print("\nA recorded conversation:\n")
    for user, agent, _, _ in CONVERSATION:
        console.print(f"  [dim]user [/dim] {user}\n  [dim]agent[/dim] {agent}")
    table = Table(title="\nWhat the evaluators found", title_justify="left", title_style="bold")
    for column in ("Evaluator", "Gate", "Turn", "Result", "Reason"):
        table.add_column(column, overflow="fold", no_wrap=column == "Evaluator")
    reduced = {entry.key: f"{entry.reduce} over the turns" for entry in entries if entry.kind == "metric"}
    for result in verdict.evaluator_results:
        if how := reduced.get(result.name):
            table.add_row(result.name, "(metric)", "1-3", outcome(result), how)
        else:
            table.add_row(result.name, result.gate, str(result.turn), outcome(result), result.reason)
    console.print(table)
    colour = {"pass": "green", "fail": "red", "error": "yellow"}[verdict.outcome]
    console.print(f"\nVerdict: [bold {colour}]{verdict.outcome}[/], score {verdict.score}: {verdict.reason}")
    console.print("[dim]The toxicity check is planted to fail; the others hold.[/dim]")


def outcome(result: Finding) -> str:
    if result.error is not None:
        return "[yellow]error[/yellow]"
    if result.kind == "metric":
        return f"{result.value:g}"
    if result.skipped:
        return "[dim]skipped[/dim]"
    return "[green]holds[/green]" if result.success else "[red]fails[/red]"


if __name__ == "__main__":
    entries = chosen()
    show(entries, asyncio.run(evaluate(entries)))
