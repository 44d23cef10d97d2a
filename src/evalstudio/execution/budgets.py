"""Budgets: an execution that has used what it may starts no further runs; those under way finish."""

from __future__ import annotations

from dataclasses import field

from ..base.lazy_dataclass import dataclass
from ..base.times import now
from ..project.entities import Execution
from ..project.requirements import Budget
from ..reporting.spending import exceeded
from ..storage.store import SqlStore

# A sum over the execution's runs takes longer the more there are: of many, it is not made after each.
_RUNS_PER_LOOK = 100


@dataclass(slots=True)
class _Watched:
    """An execution with a budget. What was used is summed up once so many more of its runs have ended."""

    execution: Execution
    budget: Budget
    ended_since: int = 0
    look_after: int = 0


@dataclass(slots=True)
class BudgetKeeper:
    """Knows the budgets of the executions that a processor works on, and ends those that are used up.

    What is used is noticed before more than 1% of further runs have ended; of fewer than 200, after each.
    """

    store: SqlStore
    _watched: dict[str, _Watched] = field(default_factory=dict[str, _Watched])

    def watch(self, execution: Execution) -> None:
        """Keep an eye on an execution, if it has a budget."""
        if execution.budget is not None:
            self._watched[execution.id] = _Watched(execution, execution.budget)

    def run_ended(self, execution_id: str) -> None:
        if watched := self._watched.get(execution_id):
            watched.ended_since += 1

    async def look(self) -> None:
        """End what has used up its budget."""
        for one in list(self._watched.values()):
            if await self._used_up(one):
                await self.store.end_for_budget(one.execution.id)
                del self._watched[one.execution.id]

    async def _used_up(self, watched: _Watched) -> bool:
        seconds = (now() - watched.execution.created_at).total_seconds()
        if exceeded(watched.budget, 0, 0.0, seconds):
            return True
        if watched.ended_since < watched.look_after:
            return False
        spent = await self.store.spent(watched.execution.id)
        watched.ended_since, watched.look_after = 0, max(1, spent.runs // _RUNS_PER_LOOK)
        return exceeded(watched.budget, spent.tokens, spent.cost, seconds) is not None
