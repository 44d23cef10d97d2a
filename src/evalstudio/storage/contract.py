"""What a store does, and the shapes it is spoken to in.

``execution`` works through the queue; the API and the command line read the lists. No database library is
imported here.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Generic, Literal, Protocol, Self, TypeVar, overload

from pydantic import BaseModel

from ..base.json_text import HasJson, json_text
from ..evaluators.results import Finding, Outcome, Turn, Verdict
from ..messages import TokensUsage
from ..project.documents import AnyStored, DefinitionKind
from ..project.entities import (
    Counts,
    Execution,
    Run,
    RunSummary,
    StoredConnector,
    StoredEval,
    StoredPersona,
    StoredScenario,
    new_id,
)
from .errors import InvalidCursor

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Part of a list, newest first. ``cursor`` continues it; none means that this was the end."""

    items: list[T]
    cursor: str | None = None


def cursor_after(last: str) -> str:
    return base64.urlsafe_b64encode(last.encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> str:
    try:
        read = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        read = ""
    if not read.isprintable() or not read:
        raise InvalidCursor("This cursor is not one that a list handed out; start again without it.")
    return read


@dataclass(frozen=True, slots=True)
class Filters:
    """What a list is narrowed to; what is not given does not narrow. ``until`` itself is left out."""

    status: str | None = None
    outcome: Outcome | None = None
    eval_id: str | None = None
    execution_id: str | None = None
    scenario_id: str | None = None
    connector_id: str | None = None
    persona_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A scenario, persona or connector as it was, known by the hash of its content."""

    hash: str
    body: str

    @classmethod
    def of(cls, content: BaseModel | Mapping[str, Any]) -> Snapshot:
        plain = content.model_dump(mode="json", by_alias=True) if isinstance(content, BaseModel) else content
        body = json_text(plain, sort_keys=True)
        return cls(hashlib.sha256(body.encode()).hexdigest()[:40], body)


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to be queued. Runs share the snapshots they have in common."""

    scenario: Snapshot
    connector: Snapshot
    persona: Snapshot | None = None
    scenario_id: str | None = None
    scenario_name: str = ""
    persona_id: str | None = None
    persona_name: str | None = None
    connector_id: str | None = None
    connector_name: str | None = None
    case: Mapping[str, Any] | None = None
    repetition: int = 1
    id: str = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one worker to write to one attempt at a run."""

    run_id: str
    attempt: int
    worker_id: str


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run to work on, with everything as it was when it was queued. Never change it: runs share it."""

    lease: Lease
    run: RunSummary
    case: dict[str, Any] | None
    scenario: Mapping[str, Any]
    persona: Mapping[str, Any] | None
    connector: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Which runs a worker still holds, which were cancelled, and which it has lost otherwise."""

    held: frozenset[str]
    cancelled: frozenset[str]
    lost: frozenset[str]


@dataclass(frozen=True, slots=True)
class RunEnding:
    """How a run ended. The last turn may come along, to be kept in the same step; if it was kept before, only
    the results that came after it do."""

    verdict: Verdict
    output: Mapping[str, Any] = field(default_factory=dict[str, Any])
    latency_ms: float | None = None
    tokens_usage: TokensUsage | None = None
    thread_id: str | None = None
    error: str | None = None
    last_turn: Turn | None = None
    final_results: Sequence[Finding] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. Ids grow in the order in which changes became visible."""

    id: int
    kind: str
    execution_id: str | None
    run_id: str | None
    body: dict[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """An idempotency key with the fingerprint of the request it stands for."""

    key: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class DefinitionWrite:
    """One step of a set of changes that is made whole or not at all.

    What is replaced or deleted must still be of the ``expected`` version, if one is given.
    """

    kind: DefinitionKind
    put: AnyStored | None = None
    delete: str | None = None
    expected: int | None = None


@dataclass(frozen=True, slots=True)
class Pruned:
    """How much was deleted because it was old."""

    executions: int
    runs: int
    evaluations: int
    events: int


@dataclass(frozen=True, slots=True)
class Tally:
    """Runs of one execution, scenario, persona or connector in figures. Sums cover finished runs only."""

    id: str | None
    name: str | None
    counts: Counts
    mean_latency_ms: float | None
    max_latency_ms: float | None
    mean_score: float | None
    total_tokens: int | None


GroupedBy = Literal["scenario", "persona", "connector"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What repetitions repeat: a scenario with its case and persona on one connector."""

    scenario_id: str | None
    scenario_name: str
    case_name: str | None
    persona_id: str | None
    persona_name: str | None
    connector_id: str | None
    connector_name: str | None

    @property
    def key(self) -> tuple[str | None, ...]:
        """What tells subjects apart; names may change from one execution to the next."""
        return self.scenario_id or self.scenario_name, self.case_name, self.persona_id, self.connector_id

    @property
    def label(self) -> str:
        parts = (self.scenario_name, self.case_name, self.persona_name, self.connector_name)
        return " · ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs of one subject in one execution that came to the same."""

    execution_id: str
    subject: Subject
    status: str
    outcome: Outcome | None
    fault: str | None
    asserted: bool
    runs: int
    max_latency_ms: float | None
    tokens: int | None
    runs_with_tokens: int


class Definitions(Protocol):
    """Personas, scenarios, connectors and evals. What is read has the type of its kind."""

    async def create(self, entity: AnyStored, *, once: IdempotencyKey | None = None) -> AnyStored: ...
    async def update(self, entity: AnyStored, *, expected: int | None = None) -> AnyStored: ...
    async def delete(
        self, kind: DefinitionKind, definition_id: str, *, expected: int | None = None
    ) -> None: ...
    @overload
    async def get(self, kind: Literal["persona"], definition_id: str) -> StoredPersona: ...
    @overload
    async def get(self, kind: Literal["scenario"], definition_id: str) -> StoredScenario: ...
    @overload
    async def get(self, kind: Literal["connector"], definition_id: str) -> StoredConnector: ...
    @overload
    async def get(self, kind: Literal["eval"], definition_id: str) -> StoredEval: ...
    @overload
    async def find(self, kind: Literal["persona"], name: str) -> StoredPersona | None: ...
    @overload
    async def find(self, kind: Literal["scenario"], name: str) -> StoredScenario | None: ...
    @overload
    async def find(self, kind: Literal["connector"], name: str) -> StoredConnector | None: ...
    @overload
    async def find(self, kind: Literal["eval"], name: str) -> StoredEval | None: ...
    async def apply(self, changes: Sequence[DefinitionWrite]) -> None: ...


class Queue(Protocol):
    """Executions and the runs waiting in them."""

    async def enqueue(
        self, execution: Execution, runs: Sequence[NewRun], *, once: IdempotencyKey | None = None
    ) -> Execution: ...
    async def claim(
        self,
        worker_id: str,
        limit: int,
        lease_seconds: float,
        *,
        room: Mapping[str, int] | None = None,
        execution_id: str | None = None,
    ) -> Sequence[ClaimedRun]: ...
    async def heartbeat(self, leases: Collection[Lease], lease_seconds: float) -> Heartbeat: ...
    async def append_turn(self, lease: Lease, turn: Turn) -> None: ...
    async def finish(self, lease: Lease, ending: RunEnding) -> None: ...
    async def release(self, leases: Collection[Lease]) -> None: ...
    async def abandon(self, worker_ids: Collection[str]) -> int: ...
    async def workers(self) -> Sequence[str]: ...
    async def wait_for_work(self, worker_id: str, timeout: float) -> bool: ...


class Records(Protocol):
    """What a project holds and what was run in it: to look at, to do again, to clear away."""

    async def list_of(
        self, kind: DefinitionKind, filters: Filters = ..., *, cursor: str | None = None, limit: int = 50
    ) -> Page[AnyStored]: ...
    async def execution(self, wanted: str) -> Execution: ...
    async def executions(
        self, filters: Filters = ..., *, cursor: str | None = None, limit: int = 50
    ) -> Page[Execution]: ...
    async def run(self, wanted: str, *, attempt: int | None = None) -> Run: ...
    async def runs(
        self, filters: Filters = ..., *, cursor: str | None = None, limit: int = 50
    ) -> Page[RunSummary]: ...
    async def cancel(
        self, *, execution_id: str | None = None, run_ids: Sequence[str] | None = None
    ) -> int: ...
    async def retry(
        self, *, execution_id: str | None = None, run_ids: Sequence[str] | None = None
    ) -> int: ...
    async def delete_execution(self, wanted: str) -> int: ...
    async def delete_runs(self, run_ids: Sequence[str]) -> int: ...


class Store(Records, Definitions, Queue, Protocol):
    """Everything a project keeps."""

    async def snapshots(self, run_id: str) -> Mapping[str, Mapping[str, Any] | None]: ...
    async def prune(self, keep: timedelta) -> Pruned: ...

    async def events(
        self,
        after_id: int = 0,
        *,
        execution_id: str | None = None,
        run_id: str | None = None,
        limit: int = 500,
    ) -> Sequence[Event]: ...
    async def last_event_id(self) -> int: ...
    async def wait_for_events(self, after_id: int, timeout: float) -> bool: ...

    async def save_result(self, result: HasJson | Mapping[str, Any]) -> None: ...
    async def save_evaluation(
        self, result: HasJson | Mapping[str, Any], *, once: IdempotencyKey | None = None
    ) -> str: ...
    async def made_by(self, once: IdempotencyKey) -> str | None: ...
    async def evaluation(self, wanted: str) -> dict[str, Any]: ...
    async def evaluations(
        self, filters: Filters = ..., *, cursor: str | None = None, limit: int = 50
    ) -> Page[dict[str, Any]]: ...
    async def add_feedback(
        self,
        body: Mapping[str, Any],
        *,
        run_id: str | None = None,
        evaluation_id: str | None = None,
        once: IdempotencyKey | None = None,
    ) -> dict[str, Any]: ...
    async def feedback(
        self,
        *,
        run_id: str | None = None,
        evaluation_id: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[dict[str, Any]]: ...

    async def tally_executions(self, filters: Filters = ..., *, limit: int = 50) -> Sequence[Tally]: ...
    async def tally(self, by: GroupedBy, filters: Filters = ...) -> Sequence[Tally]: ...
    async def run_groups(self, filters: Filters = ...) -> Sequence[RunGroup]: ...

    async def close(self) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
