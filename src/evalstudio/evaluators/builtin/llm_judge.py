"""llm-judge: a language model says whether success and failure criteria are met, in one call per vote."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import field
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, create_model, model_validator
from pydantic.json_schema import SkipJsonSchema

from ...base.lazy_dataclass import dataclass
from ...messages import Message, TokensUsage
from ..contract import EvaluationResult, EvaluatorContext, Gate
from ..criteria import Name, Text
from ..definition import EvaluatorConfig, define_evaluator
from ..model_replies import ModelReply, refusal_of
from .evidence import PLANTED, ShownTexts, checked_quotes, comparable_texts, planted, texts_of
from .prompts import LLM_JUDGE_SYSTEM, VERDICT_FIELDS, judge_request, llm_judge_prompt


class LlmJudge(EvaluatorConfig):
    success_criteria: Text | None = Field(None, description="When the conversation has succeeded")
    failure_criteria: Text | None = Field(None, description="When the conversation has failed")
    failure_criteria_mode: Literal["on_max_messages", "every_turn"] = Field(
        "on_max_messages", description="Whether a met failure criterion ends the conversation at once"
    )
    model: str | None = Field(None, description="Model to ask; the project's evaluation model by default")
    votes: int = Field(1, ge=1, le=15, description="How many times to ask; the majority decides")
    llm: SkipJsonSchema[Any] = Field(None, exclude=True, description="A model object, in code only")

    @model_validator(mode="after")
    def _something_to_judge(self) -> LlmJudge:
        if not (self.success_criteria or self.failure_criteria):
            raise ValueError("needs successCriteria or failureCriteria")
        return self

    @property
    def failure_decides(self) -> bool:
        """Beside success criteria, and not in every turn, failure criteria only explain."""
        at_once = self.failure_criteria_mode == "every_turn"
        return bool(self.failure_criteria) and (at_once or not self.success_criteria)


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
    question = [judge_messages(ctx) for _ in range(config.votes)]
    calls = (model.answer(messages, shape, model=config.model) for messages in question)
    answers: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
    texts = await comparable_texts(texts_of(ctx.messages))
    return _decide(ctx, Tally([_vote(answer, ctx, texts) for answer in answers]), texts)


def judge_messages(ctx: EvaluatorContext[LlmJudge]) -> list[Message]:
    """What the judge of a turn is asked."""
    success, failure = ctx.config.success_criteria, ctx.config.failure_criteria
    prompt = llm_judge_prompt(success, failure, ctx.scenario.instructions, ctx.messages)
    return judge_request(LLM_JUDGE_SYSTEM, prompt, ctx.facts.limits)


def _decide(ctx: EvaluatorContext[LlmJudge], votes: Tally, texts: ShownTexts) -> EvaluationResult:
    config = ctx.config
    at_once = config.failure_criteria_mode == "every_turn"
    success, failure = votes.majority("success_met"), votes.majority("failure_met")
    if (config.success_criteria and success is None) or (config.failure_decides and failure is None):
        return EvaluationResult(error=votes.why_undecided(), metadata=votes.metadata())
    ends_now = failure is True and at_once
    holds = success is True and not ends_now if config.success_criteria else failure is False
    vote = votes.representative(success, failure)
    question = "failure_met" if ends_now or not config.success_criteria else "success_met"
    answer = {
        "successMet": success is True if config.success_criteria else holds,
        "failureMet": failure is True,
        "confidence": vote.confidence,
        "evidence": checked_quotes(vote.evidence, texts),
    }
    return EvaluationResult(
        success=holds,
        value=1.0 if holds else 0.0,
        reason=vote.reasoning + votes.split(question),
        metadata=answer | votes.metadata(),
        decisive=ends_now,
    )


QUESTIONS = ("success_met", "failure_met")


def _between(number: float | None) -> float | None:
    if number is not None and not 0 <= number <= 1:
        raise ValueError("must be from 0 to 1")
    return number


@cache
def vote_schema(success: bool, failure: bool) -> type[ModelReply]:
    """What one call answers: the reasoning first, then only what is asked."""
    requested = {"success_met": success, "failure_met": failure}
    defaults: dict[str, tuple[Any, Any]] = {
        "reasoning": (Name, ...),
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
    return create_model("Verdict", __base__=ModelReply, __doc__="The verdict on a conversation.", **fields)


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


def _vote(answer: Any, ctx: EvaluatorContext[LlmJudge], texts: ShownTexts) -> Vote:
    """The vote in a model's answer, or in the error it ended in."""
    if isinstance(answer, BaseException):
        return Vote(error=refusal_of(answer), raw=getattr(answer, "raw", None))
    vote = Vote(**answer.value.model_dump(), usage=answer.usage, raw=answer.raw)
    if _is_planted(vote, ctx, texts):
        vote.error = PLANTED
    return vote


def _is_planted(vote: Vote, ctx: EvaluatorContext[LlmJudge], texts: ShownTexts) -> bool:
    """Only what helps the agent is looked for: by planting a failure it must not turn one into an error."""
    helps = {"success_met": vote.success_met is True}
    helps["failure_met"] = ctx.config.failure_decides and vote.failure_met is False
    return any(
        planted(question, getattr(vote, question), vote.reasoning, texts)
        for question in QUESTIONS
        if helps[question]
    )


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
        failed = len(self.votes) - len(self.valid)
        return f" ({agreed} of {len(self.votes)} votes{f'; {failed} failed' if failed else ''})"

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
