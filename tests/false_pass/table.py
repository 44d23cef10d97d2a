"""The table of what must not pass: bad agents, bad data, bad judges and bad definitions.

A row is a function that tries one way to get a pass without earning it and returns what came of it. The
decorator states what must come of it instead. ``test_table.py`` runs every row of every module of this
package, and ``docs/what-cannot-pass.md`` is written from them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from evalstudio import run_evaluation, run_scenario
from evalstudio.base.problems import InvalidInput
from evalstudio.plugins import PluginRegistry

Area = Literal["agent", "data", "judge", "definition"]
Expected = Literal[
    "fail",
    "unasserted",
    "refused",
    "error",
    "error: agent",
    "error: judge",
    "error: evaluator",
    "error: simulator",
    "error: system",
]


@dataclass(frozen=True, slots=True)
class Came:
    """What came of an attempt: the outcome, with the fault of an error, and the text that says why."""

    outcome: str
    says: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One attempt with what must come of it. ``says`` must stand in the text that explains it."""

    name: str
    area: Area
    attempt: str
    expect: Expected
    says: str
    run: Callable[[], Awaitable[Came]]


ROWS: list[Row] = []


def row(
    area: Area, attempt: str, *, expect: Expected, says: str = ""
) -> Callable[[Callable[[], Awaitable[Came]]], Callable[[], Awaitable[Came]]]:
    """Adds a function to the table; ``attempt`` is the sentence the docs show."""

    def add(run: Callable[[], Awaitable[Came]]) -> Callable[[], Awaitable[Came]]:
        ROWS.append(Row(run.__name__.replace("_", "-"), area, attempt, expect, says, run))
        return run

    return add


async def live(
    agent: Any, *evaluators: Any, llm: Any = None, registry: PluginRegistry | None = None, **scenario: Any
) -> Came:
    """One scripted conversation with an agent, looked at by these evaluators."""
    definition = {"name": "attempt", "script": ["Hello"], "evaluators": list(evaluators)} | scenario
    try:
        result = await run_scenario(definition, agent, llm=llm, registry=registry)
    except (InvalidInput, ValidationError) as error:
        return Came("refused", str(error))
    outcome = f"error: {result.fault}" if result.outcome == "error" else result.outcome
    return Came(outcome, result.reason)


async def recorded(
    record: Mapping[str, Any], *evaluators: Any, criteria: Any = (), llm: Any = None, **config: Any
) -> Came:
    """One record scored by these evaluators on these criteria."""
    settings = {"criteria": list(criteria), "evaluatorConfigs": list(evaluators)} | config
    try:
        result = await run_evaluation(dict(record), settings, llm=llm)
    except (InvalidInput, ValidationError) as error:
        return Came("refused", str(error))
    reasons = [result.reason, *result.run_errors, *(r.reasoning or "" for r in result.results)]
    return Came(result.outcome, "; ".join(reasons))
