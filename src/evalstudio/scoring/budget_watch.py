"""Ending a job when what it may use is used up."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from ..base.lazy_dataclass import dataclass
from .scorer import ScoredChunk, Scorer
from .summary import DatasetSummary

UsedUp = Callable[[int, float], str | None]
"""Says, from the tokens and the cost that judging took, why no further record may be scored; else nothing."""


@dataclass(slots=True)
class BudgetWatch:
    """What judging took since the command was started, and why it ends, if it does.

    Records under way are finished, no further is begun; on workers that score shards, so it is with shards.
    What an agent used was used when its responses were recorded, and what an earlier start took is paid.
    """

    used_up: UsedUp | None = None
    tokens: float = 0.0
    cost: float = 0.0
    reason: str | None = None

    def count(self, summary: DatasetSummary) -> None:
        """Add what some records took."""
        self.tokens += summary.used["judgeTokens"].total
        self.cost += summary.used["judgeCost"].total
        if self.used_up is not None and self.reason is None:
            self.reason = self.used_up(int(self.tokens), self.cost)

    def over(self, parts: Iterator[ScoredChunk], scorer: Scorer) -> Generator[ScoredChunk]:
        for scored in parts:
            self.count(scored.summary)
            scorer.stopped = self.reason is not None
            yield scored
