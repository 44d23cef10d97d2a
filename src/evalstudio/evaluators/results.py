"""What is kept: the finding of an evaluator, the turn it was made on, and the verdict over all of them.

The engine makes them, storage keeps them, the API and the client read them: each exists once. What an
evaluator's author returns is an ``EvaluationResult``.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import field
from typing import Any, ClassVar, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field, computed_field, with_config
from pydantic.alias_generators import to_camel
from typing_extensions import TypedDict

from ..base.constructed import constructed
from ..base.lazy_dataclass import dataclass
from ..messages import Message, TokensUsage
from .contract import Fault, Gate, Invocation, Kind
from .criteria import Coverage, Score

Outcome = Literal["pass", "fail", "error", "unasserted"]
EndedBy = Literal["failure", "success", "script", "user", "limit", "recording"]

# How a conversation ended, in the words of every table and page. They say nothing of pass or fail.
ENDINGS: dict[EndedBy, str] = {
    "failure": "ended early: a check failed",
    "success": 'ended early: every "eventually" check had held',
    "script": "ended with the last message of the script",
    "user": "ended by the simulated user",
    "limit": "ended at the limit of messages",
    "recording": "ended with the recorded conversation",
}
ERROR_PREFIX = "Evaluator error: "

# camelCase in JSON; whoever is sent one of these need not ask whether a field is there.
# Each is built when it is first used.
SENT = ConfigDict(
    defer_build=True,
    alias_generator=to_camel,
    populate_by_name=True,
    json_schema_serialization_defaults_required=True,
)


@dataclass(slots=True)
class Finding:
    """One result of one evaluator on one turn, with everything needed to explain it later."""

    __pydantic_config__: ClassVar[ConfigDict] = SENT

    type: str
    label: str
    name: str
    kind: Kind
    gate: Gate
    success: bool
    value: float | None = None
    reason: str = ""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    error: str | None = None
    fault: Fault | None = None
    skipped: bool = False
    decisive: bool = False
    pending: bool = False
    criterion_name: str | None = None
    score: Score | None = None
    turn: int = 1
    duration_ms: float = 0.0
    unit: str | None = None
    threshold: float | None = None
    # Which of several results of one entry this is, counted from 1; those of a criterion apart.
    rule: int | None = None
    traceback: str | None = None

    @property
    def failed(self) -> bool:
        return not (self.success or self.skipped) and self.error is None

    @property
    def holds(self) -> bool:
        return self.success and not self.skipped and self.error is None

    @property
    def missing(self) -> bool:
        """Whether a metric had nothing to measure."""
        return bool(self.metadata) and bool(self.metadata.get("missing"))

    @property
    def budget_used(self) -> float | None:
        """The share of its budget that was spent, where the evaluator holds one."""
        share = self.metadata.get("budgetUsed") if self.metadata else None
        return share if isinstance(share, int | float) else None

    @property
    def not_asked(self) -> bool:
        """Whether the evaluator was spared, because something fast had already failed."""
        return self.skipped and bool(self.metadata.get("notAsked"))

    @property
    def word(self) -> str:
        """The result in one word, the same in the terminal and in notebooks."""
        if self.error is not None:
            return "error"
        if self.skipped:
            return "skipped"
        if self.kind == "metric":
            return "missing" if self.missing else "measured"
        return "pending" if self.pending else "pass" if self.success else "fail"

    def to_json(self) -> dict[str, Any]:
        """The finding as it is stored: flags and texts that do not apply are left out."""
        fields: dict[str, Any] = {
            "type": self.type,
            "label": self.label,
            "name": self.name,
            "kind": self.kind,
            "gate": self.gate,
            "success": self.success,
            "value": self.value,
            "reason": self.reason,
            "metadata": self.metadata,
            "turn": self.turn,
            "durationMs": round(self.duration_ms, 3),
        }
        optional = {
            "error": self.error,
            "fault": self.fault,
            "skipped": self.skipped or None,
            "decisive": self.decisive or None,
            "pending": self.pending or None,
            "criterionName": self.criterion_name,
            "score": self.score,
            "unit": self.unit,
            "threshold": self.threshold,
            "rule": self.rule,
            "traceback": self.traceback,
        }
        return fields | {key: item for key, item in optional.items() if item is not None}


def with_later(findings: Sequence[Finding], later: Sequence[Finding]) -> list[Finding]:
    """A turn's findings with what an entry found later in the place of what it had found before."""
    anew: dict[str, list[Finding]] = {}
    for finding in later:
        anew.setdefault(finding.name, []).append(finding)
    # A dict keeps the place of a key whose value is replaced.
    by_name: dict[str, list[Finding]] = {}
    for finding in findings:
        by_name.setdefault(finding.name, []).append(finding)
    return [finding for several in (by_name | anew).values() for finding in several]


@dataclass(slots=True)
class Attempt:
    """One of several calls of the agent for the same turn: what it failed with, and the wait before the next.

    ``retry_after`` is how many seconds the agent asked to wait.
    """

    __pydantic_config__: ClassVar[ConfigDict] = SENT

    number: int
    error: str | None = None
    wait_ms: float | None = None
    retry_after: float | None = None

    def to_json(self) -> dict[str, Any]:
        optional = {"error": self.error, "waitMs": self.wait_ms, "retryAfter": self.retry_after}
        return {"number": self.number} | {key: item for key, item in optional.items() if item is not None}


class Turn(BaseModel):
    """One agent invocation with the evaluations after it. Turn 0 is what was said before the first.

    In JSON the messages stand in the run; ``messageCount`` says how many of them are the turn's own.
    """

    model_config = SENT

    number: int = Field(validation_alias="turn", serialization_alias="turn", ge=0)
    message_count: int = 0
    latency_ms: float | None = None
    tokens_usage: TokensUsage | None = None
    usage_missing: str | None = Field(default=None, description="Why a reported usage cannot be used")
    results: list[Finding] = Field(
        default_factory=list[Finding],
        validation_alias="evaluatorResults",
        serialization_alias="evaluatorResults",
    )
    first_token_ms: float | None = Field(default=None, description="Until a stream's first text or call")
    attempts: list[Attempt] | None = Field(default=None, description="All calls, where there were several")
    metadata: dict[str, Any] | None = Field(default=None, description="What the connector says of the call")
    redacted: list[str] | None = Field(
        default=None,
        description="Where known secrets were taken out of the answer; null where no secret is known",
    )
    user_message: Message | None = Field(default=None, exclude=True)
    messages: list[Message] = Field(default_factory=list[Message], exclude=True)

    @classmethod
    def of(
        cls,
        number: int,
        *,
        user_message: Message | None,
        messages: list[Message] | None = None,
        latency_ms: float | None = None,
        tokens_usage: TokensUsage | None = None,
        usage_missing: str | None = None,
        first_token_ms: float | None = None,
        attempts: list[Attempt] | None = None,
        metadata: dict[str, Any] | None = None,
        redacted: list[str] | None = None,
    ) -> Turn:
        """A turn of parts that were read already, which are not looked at again."""
        fields: dict[str, Any] = {
            "number": number,
            "message_count": 0,
            "latency_ms": latency_ms,
            "tokens_usage": tokens_usage,
            "usage_missing": usage_missing,
            "results": [],
            "first_token_ms": first_token_ms,
            "attempts": attempts,
            "metadata": metadata,
            "redacted": redacted,
            "user_message": user_message,
            "messages": [] if messages is None else messages,
        }
        return constructed(cls, fields)

    @property
    def all_messages(self) -> list[Message]:
        """What the user said, if anything, and what the agent added."""
        return self.messages if self.user_message is None else [self.user_message, *self.messages]

    @property
    def invocation(self) -> Invocation:
        return Invocation(
            self.latency_ms,
            self.messages,
            self.tokens_usage,
            self.usage_missing,
            first_token_ms=self.first_token_ms,
            metadata=deepcopy(self.metadata) if self.metadata else {},
            redacted=None if self.redacted is None else list(self.redacted),
        )

    def to_json(self) -> dict[str, Any]:
        """The turn as it is stored, beside its messages. What does not apply is left out."""
        optional = {
            "firstTokenMs": self.first_token_ms,
            "attempts": [attempt.to_json() for attempt in self.attempts or ()] or None,
            "metadata": self.metadata or None,
            "redacted": self.redacted,
        }
        return {key: item for key, item in optional.items() if item is not None} | {
            "turn": self.number,
            "messageCount": len(self.all_messages),
            "latencyMs": self.latency_ms,
            "tokensUsage": self.tokens_usage.model_dump() if self.tokens_usage else None,
            **({"usageMissing": self.usage_missing} if self.usage_missing else {}),
            "evaluatorResults": [finding.to_json() for finding in self.results],
        }


class Verdict(BaseModel):
    """What a run or a record came to. An error is neither success nor failure; nor is ``unasserted``, the
    outcome where no assertion held or failed.

    The findings behind it, the metrics and the coverage are part of a run's output, not of its summary.
    """

    model_config = SENT

    outcome: Outcome
    reason: str = ""
    score: float | None = None
    fault: Fault | None = None
    overall_score: float | None = None
    evaluator_results: list[Finding] = Field(default_factory=list[Finding], exclude=True)
    metrics: dict[str, float] = Field(default_factory=dict[str, float], exclude=True)
    criterion_scores: dict[str, float] = Field(default_factory=dict[str, float], exclude=True)
    coverage: Coverage | None = Field(default=None, exclude=True)

    @computed_field
    @property
    def success(self) -> bool:
        return self.outcome == "pass"


class CriteriaAnswer(TypedDict):
    """What the judge of a scenario's success and failure criteria answered."""

    successMet: bool
    failureMet: bool
    confidence: float | None
    reasoning: str


# In the metadata of a finding: its evaluator asked a model of its own, whose calls nobody counts.
UNSEEN_MODEL = "unseenModel"


class RecordingInfo(TypedDict, total=False):
    """Where a conversation that was not held here came from, and what came along with it."""

    id: str
    origin: str
    taskId: str
    trial: int
    agent: str
    startedAt: str
    tags: list[str]
    expectedCalls: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    metadata: dict[str, Any]
    error: str


@with_config(ConfigDict(extra="allow", defer_build=True))
class RunOutput(TypedDict):
    """What a run came to in detail. Parts that do not apply are left out."""

    avgLatencyMs: NotRequired[float]
    totalLatencyMs: NotRequired[float]
    messageCount: NotRequired[int]
    maxMessagesReached: NotRequired[bool]
    endedBy: NotRequired[EndedBy]
    endedAtTurn: NotRequired[int]
    state: NotRequired[dict[str, Any]]
    recording: NotRequired[RecordingInfo]
    stopReason: NotRequired[str]
    tokensUsage: NotRequired[TokensUsage]
    modelUsage: NotRequired[dict[str, TokensUsage]]
    evaluation: NotRequired[CriteriaAnswer]
    evaluatorResults: NotRequired[list[Finding]]
    metrics: NotRequired[dict[str, float]]
    criterionScores: NotRequired[dict[str, float]]
    overallScore: NotRequired[float]
    coverage: NotRequired[dict[str, Any]]
    hookAttempts: NotRequired[dict[str, list[Attempt]]]
    log: NotRequired[str]
    traceback: NotRequired[str]
