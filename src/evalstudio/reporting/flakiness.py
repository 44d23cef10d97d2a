"""Whether a subject dropped by more than its known flakiness explains, told from its earlier runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ..base.lazy_dataclass import dataclass
from .distributions import hypergeometric_cdf
from .paired import ALPHA, benjamini_hochberg

DropVerdict = Literal["none", "explained", "unknown", "beyond"]


class History(NamedTuple):
    """One subject: its earlier runs (the base's included) and the candidate's."""

    passed: int
    scored: int
    candidate_passed: int
    candidate_scored: int


@dataclass(frozen=True, slots=True)
class Drop:
    """How likely so few passes are if nothing changed.

    `none`: the candidate passed as often or more often. `beyond`: chance is an unlikely explanation.
    `explained`: the subject failed before, and this is no more than that. `unknown`: it never failed before,
    but it ran too seldom to tell a change from bad luck; or it has no earlier run.
    """

    p: float
    adjusted_p: float
    verdict: DropVerdict


def drop_probability(history: History) -> float:
    """The chance that the candidate's runs hold so few of all the passes, if all runs are alike.

    Fisher's exact test, one-sided. One failure after ten passes has a chance of 1 in 11: any of the eleven
    runs could have been the one that failed.
    """
    total = history.scored + history.candidate_scored
    passed = history.passed + history.candidate_passed
    return hypergeometric_cdf(history.candidate_passed, total, passed, history.candidate_scored)


def judge_drops(histories: Sequence[History], alpha: float = ALPHA) -> list[Drop]:
    """Judge many subjects at once, with p corrected for their number (Benjamini and Hochberg)."""
    ps = [drop_probability(history) for history in histories]
    return [
        Drop(p, adjusted, _verdict(history, adjusted, alpha))
        for history, p, adjusted in zip(histories, ps, benjamini_hochberg(ps), strict=True)
    ]


def _verdict(history: History, p: float, alpha: float) -> DropVerdict:
    if not history.candidate_scored:
        return "none"
    if not history.scored:
        return "unknown" if history.candidate_passed < history.candidate_scored else "none"
    if history.candidate_passed * history.scored >= history.passed * history.candidate_scored:
        return "none"
    if p <= alpha:
        return "beyond"
    return "explained" if history.passed < history.scored else "unknown"
