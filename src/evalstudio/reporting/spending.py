"""Tokens and cost by role: agent, simulator and judge. What is not known is unknown, never 0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import BaseModel

from ..project.entities import RunSummary, Subject
from ..project.requirements import Budget
from ..storage.contract import RunGroup, Spending

Role = Literal["agent", "simulator", "judge"]
ROLES: tuple[Role, ...] = ("agent", "simulator", "judge")
USED = ("simulator_tokens", "judge_tokens", "agent_cost", "simulator_cost", "judge_cost")


class RoleSpending(BaseModel):
    """What one role used over the finished runs. A sum covers only the runs of which it is known: all of them
    where the two numbers of runs are equal, none where it is None."""

    model_config = Subject.model_config

    role: Role
    runs: int
    tokens: int | None
    runs_with_tokens: int
    cost: float | None
    runs_with_cost: int


def spending_of(run: RunSummary) -> Spending:
    """What a single run used."""
    values = {name: getattr(run, name) for name in USED}
    return Spending(
        finished=0 if run.result is None else 1,
        known={name: int(value is not None) for name, value in values.items()},
        sums={name: value or 0.0 for name, value in values.items()},
    )


def add_spending(one: Spending, other: Spending) -> Spending:
    return Spending(
        finished=one.finished + other.finished,
        known={name: one.known.get(name, 0) + other.known.get(name, 0) for name in USED},
        sums={name: one.sums.get(name, 0.0) + other.sums.get(name, 0.0) for name in USED},
    )


def spending_by_role(groups: Iterable[RunGroup]) -> list[RoleSpending]:
    counted = list(groups)
    finished = sum(group.spent.finished for group in counted)
    return [_role(role, counted, finished) for role in ROLES]


def _role(role: Role, groups: Sequence[RunGroup], finished: int) -> RoleSpending:
    cost, with_cost = _sum(groups, f"{role}_cost")
    if role == "agent":
        with_tokens = sum(group.runs_with_tokens for group in groups)
        tokens = float(sum(group.tokens or 0 for group in groups))
    else:
        tokens, with_tokens = _sum(groups, f"{role}_tokens")
    return RoleSpending(
        role=role,
        runs=finished,
        tokens=int(tokens) if with_tokens else None,
        runs_with_tokens=with_tokens,
        cost=cost if with_cost else None,
        runs_with_cost=with_cost,
    )


def _sum(groups: Sequence[RunGroup], name: str) -> tuple[float, int]:
    known = sum(group.spent.known.get(name, 0) for group in groups)
    return sum(group.spent.sums.get(name, 0.0) for group in groups), known


def total_known(usage: Sequence[RoleSpending]) -> tuple[int, float]:
    """Tokens and cost of all roles, as far as they are known: what a budget is held against."""
    return sum(one.tokens or 0 for one in usage), sum(one.cost or 0.0 for one in usage)


def exceeded(budget: Budget, tokens: int, cost: float, seconds: float) -> str | None:
    """Which limit of a budget is reached, in words."""
    if budget.max_tokens is not None and tokens >= budget.max_tokens:
        return f"{tokens:,} of {budget.max_tokens:,} tokens are used"
    if budget.max_cost is not None and cost >= budget.max_cost:
        return f"${cost:,.4f} of ${budget.max_cost:,.4f} are used"
    if budget.max_time is not None and seconds >= budget.max_time:
        return f"{budget.max_time:g} seconds are over"
    return None


def unseen(budget: Budget, usage: Sequence[RoleSpending]) -> list[str]:
    """What a budget could not hold, because it is not known."""
    tokens = [one.role for one in usage if one.runs_with_tokens < one.runs]
    costs = [one.role for one in usage if one.runs_with_cost < one.runs]
    parts = ((budget.max_tokens, "tokens", tokens), (budget.max_cost, "cost", costs))
    return [
        f"The budget does not cover all {what}: unknown for {' and '.join(roles)}"
        for limit, what, roles in parts
        if limit is not None and roles
    ]


def spending_text(one: RoleSpending, noun: str = "runs") -> str:
    """A role in words: ``judge: tokens 1,200, cost $0.0042``."""
    return f"{one.role}: tokens {tokens_text(one, noun)}, cost {cost_text(one, noun)}"


def spending_lines(usage: Iterable[RoleSpending], noun: str = "runs") -> list[str]:
    """The roles in words: the agent, and every other that used something or may have."""
    return [
        spending_text(one, noun) for one in usage if one.role == "agent" or one.tokens != 0 or one.cost != 0
    ]


def tokens_text(one: RoleSpending, noun: str = "runs") -> str:
    text = "unknown" if one.tokens is None else f"{one.tokens:,}"
    return text + _known_of(one.runs_with_tokens, one.runs, noun)


def cost_text(one: RoleSpending, noun: str = "runs") -> str:
    text = "unknown" if one.cost is None else f"${one.cost:,.4f}"
    return text + _known_of(one.runs_with_cost, one.runs, noun)


def _known_of(known: int, runs: int, noun: str) -> str:
    return "" if known in (0, runs) else f" (known of {known:,} of {runs:,} {noun})"
