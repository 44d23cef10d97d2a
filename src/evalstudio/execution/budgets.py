"""Budgets: an execution that has used what it may starts no further runs; those under way finish."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ..project.entities import Execution, now
from ..project.requirements import Budget
from ..reporting.spending import exceeded, spending_by_role
from ..storage.contract import Filters
from ..storage.store import SqlStore

# Looking costs a sum over the execution's runs: where that takes long, it is not done before every claim.
_QUICK_SECONDS = 0.05
_SHARE = 10


@dataclass(slots=True)
class BudgetKeeper:
    """Knows the budgets of the executions that a processor works on, and ends those that are used up."""

    store: SqlStore
    _known: dict[str, Execution | None] = field(default_factory=dict[str, "Execution | None"])
    _next_look: float = 0.0

    async def watch(self, execution_id: str) -> None:
        """Keep an eye on an execution, if it has a budget."""
        if execution_id not in self._known:
            execution = await self.store.execution(execution_id)
            self._known[execution_id] = execution if execution.budget else None

    async def look(self) -> None:
        """End what has used up its budget."""
        watched = [one for one in self._known.values() if one is not None]
        if not watched or time.monotonic() < self._next_look:
            return
        begun = time.monotonic()
        for execution in watched:
            assert execution.budget is not None
            if await self._used_up(execution, execution.budget):
                await self.store.end_for_budget(execution.id)
                self._known[execution.id] = None
        took = time.monotonic() - begun
        self._next_look = 0.0 if took < _QUICK_SECONDS else begun + took * _SHARE

    async def _used_up(self, execution: Execution, budget: Budget) -> bool:
        seconds = (now() - execution.created_at).total_seconds()
        usage = spending_by_role(await self.store.run_groups(Filters(execution_id=execution.id)))
        return exceeded(budget, usage, seconds) is not None
