"""What an evaluator sees and what it answers.

An evaluator is a function of one ``EvaluatorContext`` that returns an ``EvaluationResult`` (or several,
or a plain bool or number). ``definition.py`` turns such functions into definitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from operator import attrgetter
from typing import Any, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel

from ..base.copies import own_copy
from ..base.lazy_dataclass import dataclass
from ..base.paths import MISSING, follow, read_path
from ..messages import Message, TokensUsage, ToolCall, as_text, text_of, tool_calls_of
from .criteria import EvaluationCriteria, Score
from .limits import DEFAULT_LIMITS, EvaluatorLimits

Kind = Literal["assertion", "metric"]
Gate = Literal["always", "eventually", "finally"]
Reduce = Literal["last", "sum", "mean", "max"]
Cost = Literal["fast", "embedding", "llm"]
Fault = Literal["agent", "simulator", "judge", "evaluator", "system"]

C = TypeVar("C")
Shape = TypeVar("Shape", bound=BaseModel)


@dataclass(slots=True)
class EvaluationResult:
    """What one evaluator found. Use the shorthands; the fields are for when they do not suffice."""

    success: bool | None = None
    value: float | None = None
    reason: str = ""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    criterion_name: str | None = None
    score: Score | None = None
    decisive: bool = False
    skipped: bool = False
    error: str | None = None

    @staticmethod
    def passed(reason: str = "", *, value: float | None = None, **metadata: Any) -> EvaluationResult:
        return EvaluationResult(True, value, reason, metadata)

    @staticmethod
    def failed(reason: str = "", *, value: float | None = None, **metadata: Any) -> EvaluationResult:
        return EvaluationResult(False, value, reason, metadata)

    @staticmethod
    def skip(reason: str = "", **metadata: Any) -> EvaluationResult:
        return EvaluationResult(True, None, reason, metadata, skipped=True)

    @staticmethod
    def measured(value: float, reason: str = "", **metadata: Any) -> EvaluationResult:
        return EvaluationResult(True, value, reason, metadata)


class RepeatedResult(EvaluationResult):
    """What one of our assertions says of many turns and records: nobody changes it.

    It has a success and a value from 0 to 1, a short reason, and is neither an error nor skipped.
    """

    __slots__ = ()

    def own(self) -> EvaluationResult:
        """A copy to change."""
        return EvaluationResult(
            self.success, self.value, self.reason, dict(self.metadata), self.criterion_name, self.score
        )


class NotAvailable(ValueError):
    """The evaluator needs something that this turn or record does not have."""


@dataclass(slots=True, frozen=True)
class ScenarioInfo:
    """What evaluators may know of the scenario."""

    name: str = ""
    instructions: str | None = None
    max_messages: int | None = None


@dataclass(slots=True, frozen=True)
class PersonaInfo:
    """What evaluators may know of the persona: never its secrets."""

    name: str
    description: str | None = None


@dataclass(slots=True)
class Invocation:
    """The agent's answer to one call: the new messages, how long it took, what it used.

    ``latency_ms`` is None where nobody measured it: that is no answer within any budget.
    ``usage_missing`` says why a usage that the agent reported cannot be used.
    ``first_token_ms`` is how long the first text or tool call took, where the answer was a stream;
    ``metadata`` is what the connector says of the call. ``redacted`` are the places where known secrets
    stood, which are not shown to anybody; None where no secret is known.
    """

    latency_ms: float | None = None
    messages: list[Message] = field(default_factory=list[Message])
    tokens_usage: TokensUsage | None = None
    usage_missing: str | None = None
    first_token_ms: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    redacted: list[str] | None = None


@dataclass(slots=True, frozen=True)
class Answer(Generic[C]):
    """A model's validated answer, with what it cost and the text it came from."""

    value: C
    usage: TokensUsage
    raw: str = ""


class LanguageModel(Protocol):
    """What model-backed evaluators need of ``llm``: one structured answer."""

    async def answer(
        self, messages: Sequence[Message], schema: type[Shape], *, model: str | None = None
    ) -> Answer[Shape]: ...


class Embedder(Protocol):
    """What embedding evaluators need: vectors for texts."""

    async def embed(self, texts: Sequence[str], *, model: str | None = None) -> Sequence[Sequence[float]]: ...


@dataclass(slots=True)
class TurnFacts:
    """Everything about one turn, shared by the contexts of all its evaluators."""

    messages: list[Message] = field(default_factory=list[Message])
    last_invocation: Invocation = field(default_factory=Invocation)
    turn: int = 1
    is_final: bool = False
    scenario: ScenarioInfo = field(default_factory=ScenarioInfo)
    persona: PersonaInfo | None = None
    ground_truth: Any = None
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    criteria: Sequence[EvaluationCriteria] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    agent_config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    state: Mapping[str, Any] | None = None
    invocations: Sequence[Invocation] = ()
    # What the agent of a recording said before anybody asked: no answer, but nothing it may say either.
    opening: Sequence[str] = ()
    llm: LanguageModel | None = None
    embedder: Embedder | None = None
    # In recorded scoring the response and the prompt are given as they are, text or not.
    given_response: Any = MISSING
    given_prompt: str | None = None
    limits: EvaluatorLimits = DEFAULT_LIMITS
    # What entries found on turns before, by key and turn: found again, nobody is asked.
    stored_findings: Mapping[tuple[str, int], Sequence[Any]] = field(
        default_factory=dict[tuple[str, int], Sequence[Any]]
    )
    # The entries that asked whether this turn is the last.
    final_readers: set[str] = field(default_factory=set[str])
    _response: str | None = None
    _replies: list[str] | None = None
    _turn_texts: list[str] | None = None
    _prompt: str | None = None
    _size: int = -1

    def size(self) -> int:
        """How many characters the agent sent in this turn: texts, and the arguments of tool calls."""
        if self._size < 0:
            self._size = sum(map(_length, self.last_invocation.messages))
            recorded = self.given_response
            if isinstance(recorded, str):
                self._size = max(self._size, len(recorded))
            elif recorded is not MISSING or not self._size:
                self._size += len(as_text(self.root("response")) or "")
        return self._size

    def conversation_size(self) -> int:
        """How many characters the whole conversation has."""
        return max(self.size(), sum(map(_length, self.messages)))

    def response_text(self) -> str:
        if self._response is None:
            self._response = self._find_response()
        return self._response

    def _find_response(self) -> str:
        if self.given_response is not MISSING:
            text = as_text(self.given_response)
            if text is None:
                raise NotAvailable("the response is not text")
            return text
        return _last_text(self.last_invocation.messages or self.messages, "assistant")

    def reply_texts(self) -> list[str]:
        """Everything the agent said in this turn; the last one is the response."""
        if self._replies is None:
            spoken = (text_of(m) for m in self.last_invocation.messages if m.role == "assistant")
            texts = [text for text in spoken if text]
            response = self.response_text()
            # A recorded response need not be a message of the agent's.
            self._replies = [*texts, response] if response and texts[-1:] != [response] else texts
        return self._replies

    def turn_texts(self) -> list[str]:
        """What checks of the response look at: all that the agent said in this turn, never nothing."""
        if self._turn_texts is None:
            last = EvaluatorContext(None, self).need_text()
            self._turn_texts = self.reply_texts() or [last]
        return self._turn_texts

    def prompt_text(self) -> str:
        if self._prompt is None:
            recorded = self.given_prompt
            self._prompt = _last_text(self.messages, "user") if recorded is None else recorded
        return self._prompt

    def root(self, name: str) -> Any:
        """The value a path starts from, by its JSON or Python name."""
        match name:
            case "response":
                return self.response_text() if self.given_response is MISSING else self.given_response
            case "prompt" | "input":
                return self.prompt_text() if self.given_prompt is not None or self.messages else MISSING
            case "groundTruth" | "ground_truth" | "reference":
                return self.ground_truth if self.ground_truth is not None else MISSING
            case "messageHistory" | "message_history" | "messages":
                return self.messages
            case "agentConfig" | "agent_config":
                return self.agent_config
            case "context" | "metadata" | "state" | "scenario" | "persona":
                value = getattr(self, name)
                return MISSING if value is None else value
            case _:
                return MISSING


def _length(message: Message) -> int:
    length = len(message.content) if isinstance(message.content, str) else len(text_of(message))
    for call in message.tool_calls or ():
        length += len(call.function.arguments) + len(call.name)
    return length


def _last_text(messages: Sequence[Message], role: str) -> str:
    for message in reversed(messages):
        if message.role == role and (text := text_of(message)):
            return text
    return ""


class OwnFacts(TurnFacts):
    """The facts for one evaluator that is not built in: what it changes, nobody else sees.

    Each part is copied when it is first looked at, for most evaluators look at little.
    ``asked_model`` is whether it looked for one of the models whose calls are counted.
    """

    __slots__ = ("_shared", "asked_model")

    def __init__(self, shared: TurnFacts) -> None:
        self._shared = shared
        self.asked_model = False

    def __getattr__(self, name: str) -> Any:
        # Called for a slot that has no value yet.
        value = getattr(self._shared, name)
        if name in ("llm", "embedder"):
            self.asked_model = True
            return value
        value = own_copy(value)
        setattr(self, name, value)
        return value


def delegated(path: str) -> Any:
    """A read-only attribute that stands for a part's own (``facts.turn``), read without a call in Python."""
    return property(attrgetter(path))


class EvaluatorContext(Generic[C]):
    """What an evaluator sees: its config, and the conversation or record it looks at."""

    __slots__ = ("asked_final", "config", "facts")

    messages: list[Message] = delegated("facts.messages")
    """The whole conversation so far."""
    last_invocation: Invocation = delegated("facts.last_invocation")
    turn: int = delegated("facts.turn")
    """Counted from 1."""
    scenario: ScenarioInfo = delegated("facts.scenario")
    persona: PersonaInfo | None = delegated("facts.persona")
    ground_truth: Any = delegated("facts.ground_truth")
    context: Mapping[str, Any] = delegated("facts.context")
    criteria: Sequence[EvaluationCriteria] = delegated("facts.criteria")
    metadata: Mapping[str, Any] = delegated("facts.metadata")
    state: Mapping[str, Any] | None = delegated("facts.state")
    """The agent's end state, where its connector can tell it."""
    embedder: Embedder | None = delegated("facts.embedder")

    def __init__(self, config: C, facts: TurnFacts) -> None:
        self.config = config
        self.facts = facts
        self.asked_final = False

    @property
    def is_final(self) -> bool:
        """Whether this turn is known to be the last; who asks is asked again when it proves to be."""
        self.asked_final = True
        return self.facts.is_final

    @property
    def invocations(self) -> Sequence[Invocation]:
        """Every invocation of this run so far, the last one included."""
        return self.facts.invocations or (self.facts.last_invocation,)

    @property
    def llm(self) -> LanguageModel:
        if self.facts.llm is None:
            raise NotAvailable("no language model is configured; set llmSettings or pass llm=")
        return self.facts.llm

    @property
    def response(self) -> str:
        """The text of the agent's last message."""
        return self.facts.response_text()

    @property
    def replies(self) -> list[str]:
        """The texts of all the agent's messages in this turn, in order; the last is the response."""
        return list(self.facts.reply_texts())

    @property
    def prompt(self) -> str:
        """The text of the last user message."""
        return self.facts.prompt_text()

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls of this turn."""
        return tool_calls_of(self.facts.last_invocation.messages)

    @property
    def all_tool_calls(self) -> list[ToolCall]:
        """The tool calls of the whole conversation."""
        return tool_calls_of(self.facts.messages)

    def find(self, path: str | None) -> Any:
        """The value a path leads to, or ``None``. No path means the response."""
        steps = read_path(path or "response")
        value = follow(self.facts.root(str(steps[0])), steps[1:]) if steps else MISSING
        return None if value is MISSING else value

    def text(self, path: str | None = None) -> str | None:
        """The text a path leads to (``context.order[0].id``), or ``None`` where there is none."""
        facts = self.facts
        if not path or path == "response":
            recorded = facts.given_response
            if type(recorded) is str:
                return recorded
            return facts.response_text() if recorded is MISSING else as_text(recorded)
        return as_text(self.find(path))

    def need_text(self, path: str | None = None) -> str:
        """Like ``text``, but an error that names the path where there is none."""
        facts = self.facts
        text = facts.ground_truth if path == "groundTruth" else facts.given_response
        # Most comparisons read these two texts.
        if type(text) is str and (path == "response" or path == "groundTruth"):
            return text
        text = self.text(path)
        if text is None:
            raise NotAvailable(f'no text at "{path or "response"}"')
        return text

    def criterion(self, name: str) -> EvaluationCriteria | None:
        for criterion in self.facts.criteria:
            if criterion.name == name:
                return criterion
        return None

    def with_config(self, config: Any) -> EvaluatorContext[Any]:
        return EvaluatorContext(config, self.facts)


Result = EvaluationResult | Mapping[str, Any]
Returned = Result | bool | int | float | Sequence[Result]
