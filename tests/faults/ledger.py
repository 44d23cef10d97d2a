"""The agent's own log of calls held against the records: what is lost, doubled or blamed wrongly."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.projects import calls

from evalstudio.base.outages import riding_out
from evalstudio.execution.workspace import open_workspace
from evalstudio.project.entities import Run
from evalstudio.storage.contract import Filters, all_runs


@dataclass
class Ledger:
    """Calls counted at the agent and in the records, and every run or call that does not fit."""

    runs: int = 0
    attempts: int = 0
    at_the_agent: int = 0
    in_records: int = 0
    # An interrupted attempt says that the agent may have been called once more than its turns show.
    under_way: int = 0
    lost: list[str] = field(default_factory=list[str])
    doubled: list[str] = field(default_factory=list[str])
    blamed: list[str] = field(default_factory=list[str])

    def line(self, what: str) -> str:
        return (
            f"{what}: {self.runs} runs in {self.attempts} attempts, {self.at_the_agent} calls at the agent, "
            f"{self.in_records} in records and {self.under_way} under way when interrupted; "
            f"lost {len(self.lost)}, doubled {len(self.doubled)}, blamed {len(self.blamed)}"
        )

    def check(self, what: str) -> None:
        """Print the line and hold it to be clean."""
        print(f"\n{self.line(what)}")
        assert not self.lost, self.lost[:5]
        assert not self.doubled, self.doubled[:5]
        assert not self.blamed, self.blamed[:5]
        assert self.at_the_agent == self.in_records + self.under_way

    def add(self, attempt: Run, seen: list[int], *, is_last: bool) -> None:
        """One attempt: the turns in its record, resends included, and the turns the agent was called for."""
        name = f"{attempt.id} attempt {attempt.attempt}"
        recorded = [turn.number for turn in attempt.turns if turn.number for _ in turn.attempts or [None]]
        self.attempts += 1
        self.in_records += len(recorded)
        extra = seen[len(recorded) :]
        if seen[: len(recorded)] != recorded:
            self.lost.append(f"{name}: the agent saw {seen}, the record has {recorded}")
        elif extra and (is_last or extra != [len(recorded) + 1]):
            self.doubled.append(f"{name}: the agent saw {seen}, the record has {recorded}")
        else:
            self.under_way += len(extra)


async def compare(config: Path, expected: int, *, innocent: str = "") -> Ledger:
    """Hold the agent's log against the records. Scenarios whose name begins so have a healthy agent."""
    ledger = Ledger()
    log: dict[str, list[int]] = defaultdict(list)
    for call in calls(config.parent):
        log[call["run"]].append(call["turn"])
        ledger.at_the_agent += 1
    with riding_out():
        return await _compared(ledger, log, config, expected, innocent)


async def _compared(
    ledger: Ledger, log: dict[str, list[int]], config: Path, expected: int, innocent: str
) -> Ledger:
    async with open_workspace(config) as workspace:
        summaries = [run async for run in all_runs(workspace.store, Filters())]
        ledger.runs = len(summaries)
        if len(summaries) != expected:
            ledger.lost.append(f"{expected - len(summaries)} runs are gone")
        for summary in summaries:
            if summary.status not in ("completed", "error"):
                ledger.lost.append(f"{summary.id} is {summary.status}")
            healthy = summary.scenario_name.startswith(innocent)
            if healthy and (summary.result is None or summary.result.outcome != "pass"):
                ledger.blamed.append(f"{summary.id}: {summary.result}")
            for number in range(1, summary.attempt + 1):
                attempt = await workspace.store.run(summary.id, attempt=number)
                key = summary.id if number == 1 else f"{summary.id}-{number}"
                ledger.add(attempt, log.pop(key, []), is_last=number == summary.attempt)
    ledger.doubled += [f"{key}: nobody's {turns}" for key, turns in log.items()]
    return ledger
