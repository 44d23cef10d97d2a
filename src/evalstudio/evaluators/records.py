"""Records: one already-produced response to score, and the score a criterion was given.

The shapes of recorded scoring live here, below ``scoring``, because class-style evaluators use them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from ..base.lazy_dataclass import dataclass
from ..messages import (
    Message,
    MessageList,
    TokensUsage,
    UnreadableItem,
    UnreadableMessage,
    as_text,
    read_answer,
    read_usage,
    text_of,
)
from .contract import Embedder, Invocation, LanguageModel, PersonaInfo, ScenarioInfo, TurnFacts, delegated
from .criteria import EvaluationCriteria, Score, check_unique
from .limits import DEFAULT_LIMITS, EvaluatorLimits


class EvaluationInput(BaseModel):
    """A response with everything it may be judged by."""

    model_config = ConfigDict(
        defer_build=True,
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        arbitrary_types_allowed=True,
    )

    id: str | None = None
    prompt: str | None = None
    response: Any = Field(description="The agent's answer: text, or a message")
    context: dict[str, Any] = Field(default_factory=dict[str, Any])
    ground_truth: Any = None
    criteria: list[EvaluationCriteria] = Field(default_factory=list[EvaluationCriteria])
    agent_config: dict[str, Any] = Field(default_factory=dict[str, Any])
    message_history: MessageList = Field(default_factory=list[Message])
    timestamp: float | None = None
    session_id: str | None = None
    agent_id: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    latency_ms: float | None = Field(default=None, ge=0)
    tokens_usage: TokensUsage | None = None
    usage_missing: str | None = Field(default=None, description="Why a reported usage cannot be used")

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        fields = dict(cast(Mapping[str, Any], value))
        _read_response(fields)
        _read_usage(fields)
        return fields

    @field_validator("context", "agent_config", "metadata", "message_history", "criteria", mode="before")
    @classmethod
    def _empty(cls, value: object, info: Any) -> object:
        if value is None:
            return [] if info.field_name in ("message_history", "criteria") else {}
        return value

    @field_validator("response", mode="before")
    @classmethod
    def _readable(cls, value: object) -> object:
        if isinstance(value, UnreadableMessage):
            raise value
        return value

    @field_validator("criteria")
    @classmethod
    def _unique(cls, value: list[EvaluationCriteria]) -> list[EvaluationCriteria]:
        check_unique(value)
        return value


def _read_response(fields: dict[str, Any]) -> None:
    """Read a response that is a message. Of several, the last the agent wrote is what it answered."""
    try:
        messages = read_answer(fields.get("response"))
    except UnreadableItem as error:
        # Raised where the field is read, so that everything else that is wrong is told too.
        fields["response"] = UnreadableMessage(error.problem)
        return
    if not messages:
        return
    own = [message for message in messages if message.role == "assistant"]
    answer = (own or messages)[-1]
    fields["response"] = answer
    name = "message_history" if "message_history" in fields else "messageHistory"
    earlier: Any = fields.get(name) or []
    if len(messages) > 1 and isinstance(earlier, list):
        before = [message for message in messages if message is not answer]
        fields[name] = [*cast(list[Any], earlier), *before]


def _read_usage(fields: dict[str, Any]) -> None:
    name = "tokens_usage" if "tokens_usage" in fields else "tokensUsage"
    usage, problem = read_usage(fields.get(name))
    if problem is not None:
        fields |= {name: None, "usageMissing": problem}
    elif usage is not None:
        fields[name] = usage


@dataclass(slots=True)
class CriterionResult:
    """What one evaluator said about one criterion."""

    criterion_name: str
    score: Score | None = None
    reasoning: str | None = None
    evaluator_type: str = ""
    error: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    skipped: bool = False

    def to_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"criterionName": self.criterion_name}
        if self.error is None and not self.skipped:
            fields["score"] = self.score
        if self.reasoning:
            fields["reasoning"] = self.reasoning
        fields["evaluatorType"] = self.evaluator_type
        if self.error is not None:
            fields["error"] = self.error
        if self.metadata:
            fields["metadata"] = self.metadata
        if self.skipped:
            fields["skipped"] = True
        return fields


def recorded_turn(
    history: Sequence[Message], prompt: str | None, response: Any
) -> tuple[list[Message], list[Message]]:
    """The whole conversation of a record, and its turn: what follows the last user message.

    A history that ends with the response holds it already. One that ends with an answer to another message
    than the prompt was over before the prompt, and so holds nothing of this turn.
    """
    if not history:
        messages = _answered(response)
        return messages, messages
    if not _repeats(history[-1], response):
        messages = [*history, *_answered(response)]
        if _was_over(history, prompt):
            return messages, messages[len(history) :]
    else:
        messages = list(history)
    users = [place for place, message in enumerate(messages) if message.role == "user"]
    return messages, messages[users[-1] + 1 if users else 0 :]


def _answered(response: Any) -> list[Message]:
    if isinstance(response, Message):
        return [response]
    return [Message(role="assistant", content=response)] if isinstance(response, str) else []


def _repeats(last: Message, response: Any) -> bool:
    if last.role != "assistant" or text_of(last) != as_text(response):
        return False
    return not isinstance(response, Message) or not response.tool_calls or _same_calls(last, response)


def _same_calls(one: Message, other: Message) -> bool:
    return [call.function for call in one.tool_calls or ()] == [
        call.function for call in other.tool_calls or ()
    ]


def _was_over(history: Sequence[Message], prompt: str | None) -> bool:
    """Whether a history ends with an answer to something that is not the prompt."""
    last = history[-1]
    if prompt is None or last.role != "assistant" or last.tool_calls or not text_of(last):
        return False
    asked = next((text_of(message) for message in reversed(history) if message.role == "user"), None)
    return asked is not None and asked.split() != prompt.split()


def facts_of(
    record: EvaluationInput,
    criteria: Sequence[EvaluationCriteria],
    *,
    llm: LanguageModel | None = None,
    embedder: Embedder | None = None,
    limits: EvaluatorLimits = DEFAULT_LIMITS,
) -> TurnFacts:
    """A record as evaluators see it: one turn, final."""
    response: Any = record.response
    messages, turn = recorded_turn(record.message_history, record.prompt, response)
    return TurnFacts(
        messages=messages,
        last_invocation=Invocation(record.latency_ms, turn, record.tokens_usage, record.usage_missing),
        is_final=True,
        ground_truth=record.ground_truth,
        context=record.context,
        criteria=criteria,
        metadata=record.metadata,
        agent_config=record.agent_config,
        llm=llm,
        embedder=embedder,
        given_response=response,
        given_prompt=record.prompt,
        limits=limits,
    )


def _made_when_read(make: Callable[[Any], Any]) -> Any:
    """An attribute that stands for what a function makes."""
    return property(make)


class RecordFacts(TurnFacts):
    """The facts of a record that is no more than texts, beside what all records of a dataset share.

    Messages and the call are made when they are first looked at, for most evaluators look at the text alone.
    """

    __slots__ = ("_invocation", "_readers", "_shared")

    # Shared parts are not set for each record. A ``__getattr__`` for them would slow down every read.
    turn: int = delegated("_shared.turn")
    is_final: bool = delegated("_shared.is_final")
    scenario: ScenarioInfo = delegated("_shared.scenario")
    persona: PersonaInfo | None = delegated("_shared.persona")
    agent_config: Mapping[str, Any] = delegated("_shared.agent_config")
    state: Mapping[str, Any] | None = delegated("_shared.state")
    invocations: Sequence[Invocation] = delegated("_shared.invocations")
    opening: Sequence[str] = delegated("_shared.opening")
    llm: LanguageModel | None = delegated("_shared.llm")
    embedder: Embedder | None = delegated("_shared.embedder")
    stored_findings: Mapping[tuple[str, int], Sequence[Any]] = delegated("_shared.stored_findings")
    messages: list[Message] = delegated("last_invocation.messages")
    last_invocation: Invocation = _made_when_read(lambda self: self._call())
    final_readers: set[str] = _made_when_read(lambda self: self._final_readers())
    _response: str | None = delegated("given_response")
    _prompt: str | None = delegated("given_prompt")
    _replies: list[str] | None = _made_when_read(lambda self: self._turn_texts if self.given_response else [])

    def __init__(
        self,
        shared: TurnFacts,
        response: str,
        prompt: str | None,
        ground_truth: Any,
        context: Mapping[str, Any],
        metadata: Mapping[str, Any],
    ) -> None:
        self._shared = shared
        self.given_response = response
        self.given_prompt = prompt
        self.ground_truth = ground_truth
        self.context = context
        self.metadata = metadata
        self.criteria = shared.criteria
        self.limits = shared.limits
        self._size = len(response)
        self._turn_texts = [response]
        self._invocation: Invocation | None = None
        self._readers: set[str] | None = None

    def prompt_text(self) -> str:
        return self.given_prompt or ""

    def _call(self) -> Invocation:
        if self._invocation is None:
            self._invocation = Invocation(0.0, [Message(role="assistant", content=self.given_response)])
        return self._invocation

    def _final_readers(self) -> set[str]:
        if self._readers is None:
            self._readers = set()
        return self._readers


def record_of(facts: TurnFacts) -> EvaluationInput:
    """A turn of a live conversation as a record, for evaluators that know only records."""
    return EvaluationInput.model_construct(
        prompt=facts.prompt_text() or None,
        response=facts.root("response"),
        context=dict(facts.context),
        ground_truth=facts.ground_truth,
        criteria=list(facts.criteria),
        message_history=facts.messages,
        metadata=dict(facts.metadata),
        agent_config=dict(facts.agent_config),
        latency_ms=facts.last_invocation.latency_ms,
        tokens_usage=facts.last_invocation.tokens_usage,
        usage_missing=facts.last_invocation.usage_missing,
    )
