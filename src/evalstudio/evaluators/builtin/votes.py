"""Votes of a judge: what one call is asked for, how its answer is read, and what several come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from ...messages import TokensUsage

_ASKED = {
    "success_met": "Whether the success criteria are met by now",
    "failure_met": "Whether the failure criteria are met by now",
}
QUESTIONS = tuple(_ASKED)


def _said_something(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text.strip()


def _between(number: float | None) -> float | None:
    if number is not None and not 0 <= number <= 1:
        raise ValueError("must be from 0 to 1")
    return number


def _ask_for_all(schema: dict[str, Any]) -> None:
    """The model is asked for every field; one that leaves out a side remark is understood all the same."""
    schema["required"] = list(schema["properties"])
    for shape in schema["properties"].values():
        shape.pop("default", None)
    schema["properties"]["confidence"]["type"] = "number"
    schema["properties"]["confidence"].pop("anyOf", None)


@cache
def ballot(success: bool, failure: bool) -> type[BaseModel]:
    """What one call answers: the reasoning first, then only what is asked."""
    asked = {
        name: text for (name, text), wanted in zip(_ASKED.items(), (success, failure), strict=True) if wanted
    }
    fields: dict[str, Any] = {
        "reasoning": (
            Annotated[str, AfterValidator(_said_something)],
            Field(description="Why, step by step, before any decision"),
        ),
        "evidence": (
            list[str],
            Field(
                default_factory=list[str],
                description="Short exact quotes from the conversation that decide it",
            ),
        ),
        **{name: (bool, Field(description=text)) for name, text in asked.items()},
        "confidence": (
            Annotated[float | None, AfterValidator(_between)],
            Field(None, description="How sure you are, from 0 (a guess) to 1 (certain)"),
        ),
    }
    config = ConfigDict(json_schema_extra=_ask_for_all)
    return create_model("Verdict", __config__=config, __doc__="The verdict on a conversation.", **fields)


@dataclass(slots=True)
class Vote:
    """What one call came to: answers to what was asked, or an error with the reply that caused it."""

    reasoning: str = ""
    evidence: list[str] = field(default_factory=list[str])
    success_met: bool | None = None
    failure_met: bool | None = None
    confidence: float | None = None
    usage: TokensUsage = field(default_factory=TokensUsage)
    raw: str | None = None
    error: str | None = None


def read_vote(answer: Any) -> Vote:
    """The vote in a model's answer, or in the error it ended in."""
    if isinstance(answer, BaseException):
        return Vote(error=str(answer) or type(answer).__name__, raw=getattr(answer, "raw", None))
    return Vote(**answer.value.model_dump(), usage=answer.usage, raw=answer.raw)


@dataclass(frozen=True, slots=True)
class Tally:
    """All votes on one turn."""

    votes: Sequence[Vote]
    valid: Sequence[Vote]

    def count(self, question: str, answer: bool = True) -> int:
        return sum(getattr(vote, question) is answer for vote in self.valid)

    def majority(self, question: str) -> bool | None:
        """What more than half of all votes say, failed ones included in the whole; else nothing."""
        return next((a for a in (True, False) if self.count(question, a) * 2 > len(self.votes)), None)

    def spokesman(self, success: bool | None, failure: bool | None) -> Vote:
        """A vote that agrees with what was decided: its reasoning explains it."""
        return next(
            vote
            for vote in self.valid
            if success in (None, vote.success_met) and failure in (None, vote.failure_met)
        )

    def split(self, question: str) -> str:
        if len(self.votes) == 1:
            return ""
        agreed = max(self.count(question, True), self.count(question, False))
        return f" ({agreed} of {len(self.votes)} votes)"

    def why_undecided(self) -> str:
        failed = next((vote.error for vote in self.votes if vote.error is not None), None)
        if failed is None:
            met = " and ".join(
                f"{self.count(q)} to {self.count(q, False)}" for q in QUESTIONS if self.majority(q) is None
            )
            return f"the votes are split {met}; an odd number of votes decides"
        if len(self.votes) == 1:
            return failed
        count = len(self.votes) - len(self.valid)
        return f"{count} of {len(self.votes)} votes failed and the others do not decide: {failed}"

    def metadata(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "modelUsage": sum((vote.usage for vote in self.votes), TokensUsage()).model_dump()
        }
        if len(self.votes) > 1:
            shown["votes"] = {
                "of": len(self.votes),
                "successMet": self.count("success_met"),
                "failureMet": self.count("failure_met"),
                "failed": len(self.votes) - len(self.valid),
            }
        replies = [vote.raw for vote in self.votes if vote.error is not None and vote.raw is not None]
        return shown | ({"reply": replies[0]} if replies else {})


def tally(votes: Sequence[Vote]) -> Tally:
    return Tally(votes, [vote for vote in votes if vote.error is None])
