"""Entities: what a project keeps. Definitions people make, and the executions and runs that come of them.

Every entity has an id that sorts by the moment it was made, and times in UTC.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    computed_field,
    model_validator,
)

from ..base.constructed import constructed
from ..base.times import in_utc, iso, milliseconds_of, now
from ..conversation.definitions import Case, Definition, Persona, Scenario
from ..evaluators.criteria import Name
from ..evaluators.results import ENDINGS, SENT, RunOutput, Turn, Verdict
from ..messages import Message
from .monitors import Monitor
from .requirements import Budget, Requirement

RunStatus = Literal["queued", "running", "completed", "error", "cancelled"]
ExecutionSource = Literal["live", "recorded", "rescored", "production"]
ExecutionStatus = Literal["queued", "running", "completed", "cancelled"]
OVER: tuple[ExecutionStatus, ...] = ("completed", "cancelled")
AgentErrors = Literal["error", "fail"]
RunStanding = Literal["queued", "running", "fail", "error", "cancelled", "pass", "unasserted"]

UNFINISHED = "unfinished"
"""The part of an execution's ``partial`` that says that more runs are to come, or would have come."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_CHARACTERS = 9
_RANDOM_BITS = 60


class _Ids:
    """Ids of one process in the order they were made, also within a millisecond."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def next(self) -> int:
        fresh = (time.time_ns() // 1_000_000) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
        with self._lock:
            if fresh <= self._last:
                fresh = self._last + 1 + secrets.randbits(24)
            self._last = fresh
        return fresh


_ids = _Ids()


def new_id() -> str:
    """A short unique id (21 characters); later ids sort after earlier ones."""
    return _written(_ids.next(), _TIME_CHARACTERS + _RANDOM_BITS // 5)


def derived_id(base: str, key: str) -> str:
    """The id that follows from another and a key: made again it is the same, and it sorts like the other."""
    digest = hashlib.sha256(f"{base} {key}".encode("utf-8", "surrogatepass")).digest()
    number = int.from_bytes(digest[:8], "big") >> (64 - _RANDOM_BITS)
    return base[:_TIME_CHARACTERS] + _written(number, _RANDOM_BITS // 5)


def id_floor(moment: datetime) -> str:
    """What every id made at this moment or later is not less than."""
    return _written(max(0, milliseconds_of(moment)), _TIME_CHARACTERS)


def _written(number: int, characters: int) -> str:
    return "".join(_ALPHABET[number >> 5 * place & 31] for place in range(characters - 1, -1, -1))


def name_key(name: str) -> str:
    """What two names must differ in to be two names: case and composition do not count."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name.strip()).casefold())


Moment = Annotated[datetime, AfterValidator(in_utc), PlainSerializer(iso, return_type=str, when_used="json")]


class Connector(Definition):
    """A configured way to reach one agent."""

    name: Name
    type: Name = Field(description="A built-in type or a plugin's")
    base_url: str | None = Field(default=None, description="Where the agent is reached")
    headers: dict[str, str] = Field(default_factory=dict[str, str], description="Sent with every call")
    config: dict[str, Any] = Field(default_factory=dict[str, Any], description="Settings of this type")


class Eval(Definition):
    """A named set of scenarios for one or more connectors."""

    name: Name
    scenario_ids: list[str] = Field(min_length=1)
    connector_ids: list[str] = Field(min_length=1, description="One connectorId is accepted too")
    repetitions: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="How often each combination runs; the project's default, or once, if not given",
    )
    requirements: list[Requirement] = Field(
        default_factory=list[Requirement],
        max_length=100,
        description="What an execution must reach; without any, nothing may fail or error",
    )
    budget: Budget | None = Field(default=None, description="What an execution may use")

    @model_validator(mode="before")
    @classmethod
    def _one_connector(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        fields = dict(cast(Mapping[str, Any], value))
        for single in ("connectorId", "connector_id"):
            if single in fields:
                if fields.keys() & {"connectorIds", "connector_ids"}:
                    raise ValueError("give connectorId or connectorIds, not both")
                fields["connectorIds"] = [fields.pop(single)]
        return fields

    @model_validator(mode="after")
    def _each_once(self) -> Eval:
        for field, ids in (("scenarioIds", self.scenario_ids), ("connectorIds", self.connector_ids)):
            if repeated := next((one for one in ids if ids.count(one) > 1), None):
                raise ValueError(f'{field} names "{repeated}" twice')
        return self


class Stored(BaseModel):
    """What storing adds to a definition. ``version`` grows with every change."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    id: str = Field(default_factory=new_id)
    created_at: Moment = Field(default_factory=now)
    updated_at: Moment = Field(default_factory=now)
    version: int = Field(default=1, ge=1)


class StoredPersona(Persona, Stored):
    """A persona as it is kept."""


class StoredScenario(Scenario, Stored):
    """A scenario as it is kept."""


class StoredConnector(Connector, Stored):
    """A connector as it is kept."""


class StoredEval(Eval, Stored):
    """An eval as it is kept."""


class StoredMonitor(Monitor, Stored):
    """A monitor as it is kept."""


class _Entity(BaseModel):
    """What executions and runs share: camelCase in JSON, an id and times in UTC."""

    model_config = SENT

    id: str = Field(default_factory=new_id)
    created_at: Moment = Field(default_factory=now)
    updated_at: Moment = Field(default_factory=now)


class Counts(BaseModel):
    """The runs of an execution by where they stand; each is in one of these but ``total``."""

    model_config = SENT

    total: int = 0
    queued: int = 0
    running: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0
    cancelled: int = 0
    unasserted: int = 0

    @computed_field
    @property
    def finished(self) -> int:
        return self.total - self.queued - self.running

    @property
    def left(self) -> int:
        """Those that came to nothing: not run to their end, or not at all."""
        return self.queued + self.running + self.cancelled

    @computed_field
    @property
    def standing(self) -> RunStanding:
        """All of them in one word: what is under way comes first, then the worst outcome."""
        words: tuple[tuple[int, RunStanding], ...] = (
            (self.running, "running"),
            (self.queued, "running" if self.finished else "queued"),
            (self.failed, "fail"),
            (self.errored, "error"),
            (self.cancelled, "cancelled"),
            (self.passed, "pass"),
        )
        for number, word in words:
            if number:
                return word
        return "unasserted"


class Subject(BaseModel):
    """What repetitions repeat: a scenario with its case and persona on one connector."""

    model_config = SENT | ConfigDict(frozen=True)

    scenario_id: str | None
    scenario_name: str
    case_name: str | None
    persona_id: str | None
    persona_name: str | None
    connector_id: str | None
    connector_name: str | None

    @classmethod
    def of(cls, run: Any) -> Subject:
        """The subject of a run or of a row with a run's columns; nothing is checked again."""
        return constructed(cls, {name: getattr(run, name) for name in cls.model_fields})

    @staticmethod
    def key_of(run: Any) -> tuple[str | None, ...]:
        """What tells the subjects of runs apart; names may change from one execution to the next."""
        return run.scenario_id or run.scenario_name, run.case_name, run.persona_id, run.connector_id

    @property
    def key(self) -> tuple[str | None, ...]:
        return Subject.key_of(self)

    @computed_field
    @property
    def label(self) -> str:
        parts = (self.scenario_name, self.case_name, self.persona_name, self.connector_name)
        return " · ".join(part for part in parts if part)


def reasons_of(partial: str | None) -> list[str]:
    """Why an execution is not whole, one by one."""
    return partial.split(", ") if partial else []


class Execution(_Entity):
    """One start of an eval. Without an eval it is the trial of one scenario."""

    eval_id: str | None = None
    eval_name: str | None = None
    status: ExecutionStatus = "queued"
    counts: Counts = Field(default_factory=Counts)
    started_at: Moment | None = None
    completed_at: Moment | None = None
    trigger: str | None = Field(default=None, description="What started it: cli, api, ci, …")
    labels: dict[str, Any] = Field(default_factory=dict[str, Any], description="Git commit, branch, anything")
    partial: str | None = Field(
        default=None,
        description="Why it is not whole: only, connectors, last-failed, cancelled, deleted, budget, "
        "unreadable; unfinished while more runs are to come",
    )
    replayed: bool = Field(default=False, description="Answered from a recording; no agent was called")
    requirements: list[Requirement] = Field(
        default_factory=list[Requirement], description="What it must reach, as it was when it started"
    )
    budget: Budget | None = Field(default=None, description="What it may use")
    until_decided: int | None = Field(
        default=None, description="Repeated only what was still open, at most so many times"
    )
    agent_errors: AgentErrors = Field(
        default="error", description="Whether the agent's errors count as errors or as failures"
    )
    source: ExecutionSource = Field(
        default="live",
        description="Where its conversations come from: held live, recorded elsewhere, those of another "
        "execution scored again, or production",
    )
    rescored_from: str | None = Field(
        default=None, description="The execution whose conversations were scored again"
    )

    @property
    def is_over(self) -> bool:
        return self.status in OVER

    @property
    def is_unfinished(self) -> bool:
        """Whether more runs may come, or would have come if a review had not been stopped."""
        return UNFINISHED in reasons_of(self.partial)

    @property
    def agent_errors_fail(self) -> bool:
        return self.agent_errors == "fail"

    def counting(self, agent_errors: AgentErrors | None) -> Execution:
        """The same with the agent's errors counted so, to be judged once more; without a word as it is."""
        return self.model_copy(update={"agent_errors": agent_errors}) if agent_errors else self


class Baseline(BaseModel):
    """The execution that others of its eval are compared with, under a name."""

    model_config = SENT

    eval_id: str
    name: str
    execution_id: str
    created_at: Moment = Field(default_factory=now)


class RunSummary(_Entity):
    """A run as lists show it: everything but what was said and the whole output."""

    execution_id: str
    eval_id: str | None = None
    scenario_id: str | None = None
    scenario_name: str = ""
    persona_id: str | None = None
    persona_name: str | None = None
    connector_id: str | None = None
    connector_name: str | None = None
    case_name: str | None = None
    repetition: int = Field(default=1, ge=1)
    attempt: int = Field(default=1, ge=1)
    status: RunStatus = "queued"
    started_at: Moment | None = None
    completed_at: Moment | None = None
    latency_ms: float | None = None
    total_tokens: int | None = None
    simulator_tokens: int | None = Field(default=None, description="Not given where it is not known")
    judge_tokens: int | None = None
    agent_cost: float | None = Field(default=None, description="US dollars, where the agent reports them")
    simulator_cost: float | None = None
    judge_cost: float | None = None
    turn_count: int = 0
    thread_id: str | None = None
    result: Verdict | None = None
    error: str | None = None

    @property
    def standing(self) -> str:
        """How it stands, in one word: what it came to, else its status."""
        return self.result.outcome if self.result else self.status


class Run(RunSummary):
    """A run with all that was said, turn by turn, and its whole output."""

    case: Case | None = None
    messages: list[Message] = Field(default_factory=list[Message])
    turns: list[Turn] = Field(default_factory=list[Turn])
    output: RunOutput | None = None

    @computed_field
    @property
    def ending(self) -> str | None:
        """How the conversation ended, in words."""
        output = self.output or {}
        words = ENDINGS.get(output.get("endedBy") or cast(Any, None))
        turn = output.get("endedAtTurn")
        return words if turn is None or words is None else f"a live run would have {words}, after turn {turn}"

    @model_validator(mode="after")
    def _messages_by_turn(self) -> Run:
        """In JSON the messages stand in one list; each turn gets its own back."""
        start = 0
        for turn in self.turns:
            own = self.messages[start : start + turn.message_count]
            start += turn.message_count
            if turn.number > 0 and own and own[0].role == "user":
                turn.user_message, *own = own
            turn.messages = own
        return self
