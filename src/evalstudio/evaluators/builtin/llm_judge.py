"""llm-judge: a language model says whether success and failure criteria are met, in one call per vote."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from ...messages import Message, TokensUsage, text_of
from ..contract import EvaluationResult, EvaluatorContext, Gate
from ..definition import EvaluatorConfig, define_evaluator
from .prompts import LLM_JUDGE_SYSTEM, VERDICT_FIELDS, llm_judge_prompt


class LlmJudge(EvaluatorConfig):
    success_criteria: str | None = Field(None, description="When the conversation has succeeded")
    failure_criteria: str | None = Field(None, description="When the conversation has failed")
    failure_criteria_mode: Literal["on_max_messages", "every_turn"] = Field(
        "on_max_messages", description="Whether a met failure criterion ends the conversation at once"
    )
    model: str | None = Field(None, description="Model to ask; the project's evaluation model by default")
    votes: int = Field(1, ge=1, le=15, description="How many times to ask; the majority decides")
    llm: SkipJsonSchema[Any] = Field(None, exclude=True, description="A model object, in code only")

    @field_validator("success_criteria", "failure_criteria")
    @classmethod
    def _blank_is_none(cls, value: str | None) -> str | None:
        return value if value and value.strip() else None

    @model_validator(mode="after")
    def _something_to_judge(self) -> LlmJudge:
        if not (self.success_criteria or self.failure_criteria):
            raise ValueError("needs successCriteria or failureCriteria")
        return self


def _gate(config: LlmJudge | None) -> Gate:
    if config is None or config.success_criteria:
        return "eventually"
    return "always" if config.failure_criteria_mode == "every_turn" else "finally"


@define_evaluator(type="llm-judge", label="LLM Judge", gate=_gate, cost="llm", timeout=600)
async def llm_judge(ctx: EvaluatorContext[LlmJudge]) -> EvaluationResult:
    """A language model judges the conversation against success and failure criteria."""
    config = ctx.config
    model = config.llm or ctx.llm
    shape = vote_schema(bool(config.success_criteria), bool(config.failure_criteria))
    calls = (model.answer(judge_messages(ctx), shape, model=config.model) for _ in range(config.votes))
    answers: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
    return _decide(ctx, Tally([_vote(answer, ctx.messages) for answer in answers]))


def judge_messages(ctx: EvaluatorContext[LlmJudge]) -> list[Message]:
    """What the judge of a turn is asked."""
    success, failure = ctx.config.success_criteria, ctx.config.failure_criteria
    prompt = llm_judge_prompt(success, failure, ctx.scenario.instructions, ctx.messages)
    return [Message(role="system", content=LLM_JUDGE_SYSTEM), Message(role="user", content=prompt)]


def _decide(ctx: EvaluatorContext[LlmJudge], votes: Tally) -> EvaluationResult:
    config = ctx.config
    at_once = config.failure_criteria_mode == "every_turn"
    success, failure = votes.majority("success_met"), votes.majority("failure_met")
    # Beside success criteria, and not in every turn, failure criteria only explain: they need no majority.
    decisive = bool(config.failure_criteria) and (at_once or not config.success_criteria)
    if (config.success_criteria and success is None) or (decisive and failure is None):
        return EvaluationResult(error=votes.why_undecided(), metadata=votes.metadata())
    ends_now = failure is True and at_once
    holds = success is True and not ends_now if config.success_criteria else failure is False
    vote = votes.representative(success, failure)
    question = "failure_met" if ends_now or not config.success_criteria else "success_met"
    answer = {
        "successMet": success is True if config.success_criteria else holds,
        "failureMet": failure is True,
        "confidence": vote.confidence,
        "evidence": checked_quotes(vote.evidence, ctx.messages),
    }
    return EvaluationResult(
        success=holds,
        value=1.0 if holds else 0.0,
        reason=vote.reasoning + votes.split(question),
        metadata=answer | votes.metadata(),
        decisive=ends_now,
    )


QUESTIONS = ("success_met", "failure_met")


def _stripped(text: str) -> str:
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
def vote_schema(success: bool, failure: bool) -> type[BaseModel]:
    """What one call answers: the reasoning first, then only what is asked."""
    requested = {"success_met": success, "failure_met": failure}
    defaults: dict[str, tuple[Any, Any]] = {
        "reasoning": (Annotated[str, AfterValidator(_stripped)], ...),
        "evidence": (list[str], []),
        "success_met": (bool, ...),
        "failure_met": (bool, ...),
        "confidence": (Annotated[float | None, AfterValidator(_between)], None),
    }
    fields: dict[str, Any] = {
        name: (shape, Field(default, description=VERDICT_FIELDS[name]))
        for name, (shape, default) in defaults.items()
        if requested.get(name, True)
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


def _vote(answer: Any, messages: Sequence[Message]) -> Vote:
    """The vote in a model's answer, or in the error it ended in."""
    if isinstance(answer, BaseException):
        return Vote(error=str(answer) or type(answer).__name__, raw=getattr(answer, "raw", None))
    vote = Vote(**answer.value.model_dump(), usage=answer.usage, raw=answer.raw)
    if planted(vote.reasoning, messages):
        vote.error = "the judge repeated a verdict that stands in the conversation itself"
    return vote


@dataclass(frozen=True, slots=True)
class Tally:
    """All votes on one turn."""

    votes: Sequence[Vote]

    @property
    def valid(self) -> list[Vote]:
        return [vote for vote in self.votes if vote.error is None]

    def count(self, question: str, answer: bool = True) -> int:
        return sum(getattr(vote, question) is answer for vote in self.valid)

    def majority(self, question: str) -> bool | None:
        """What more than half of all votes say, failed ones included in the whole; else nothing."""
        return next((a for a in (True, False) if self.count(question, a) * 2 > len(self.votes)), None)

    def representative(self, success: bool | None, failure: bool | None) -> Vote:
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
        usage = sum((vote.usage for vote in self.votes), TokensUsage())
        metadata: dict[str, Any] = {"modelUsage": usage.model_dump()}
        if len(self.votes) > 1:
            metadata["votes"] = {
                "of": len(self.votes),
                "successMet": self.count("success_met"),
                "failureMet": self.count("failure_met"),
                "failed": len(self.votes) - len(self.valid),
            }
        replies = [vote.raw for vote in self.votes if vote.error is not None and vote.raw is not None]
        return metadata | ({"reply": replies[0]} if replies else {})


_BAR = re.compile(r"[\r\n]\s*\|\s?")
_SYMBOLS = re.compile(r"[\W_]+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")


def checked_quotes(quotes: Sequence[str], messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Each quote with whether somebody really said it, blanks, case and quotation marks aside."""
    texts = [_plain(text) for text in _texts(messages)]
    plain = {quote: _plain(_BAR.sub("\n", quote)) for quote in quotes}
    return [
        {"quote": quote, "found": bool(plain[quote]) and any(plain[quote] in text for text in texts)}
        for quote in quotes
    ]


def planted(reasoning: str, messages: Sequence[Message]) -> bool:
    """Whether a judge's reasoning was taken from a verdict that somebody in the conversation wrote for it."""
    letters = _letters(reasoning)
    suspects = (_unescaped(text) for text in _texts(messages) if "{" in text)
    return any(letters in _letters(text) for text in suspects if any(key in text for key in QUESTIONS))


def _unescaped(text: str) -> str:
    """What JSON text says, however it spells it."""
    return _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else " ", text)


def _texts(messages: Sequence[Message]) -> list[str]:
    """What each message says, tool calls included."""
    return [
        " ".join([text_of(m), *(f"{c.name} {c.function.arguments}" for c in m.tool_calls or ())])
        for m in messages
    ]


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.replace("“", '"').replace("”", '"').replace("’", "'").split()).strip("\"' .…|")


def _letters(text: str) -> str:
    return _SYMBOLS.sub("", unicodedata.normalize("NFKC", text).casefold())
