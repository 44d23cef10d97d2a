"""What goes into a store and comes out of it. No database library is imported here."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from ..base.json_text import json_text
from ..base.lazy_dataclass import dataclass
from ..evaluators.results import Finding, Outcome, RunOutput, Turn, Verdict
from ..messages import TokensUsage
from ..project.documents import AnyStored, DefinitionKind
from ..project.entities import Counts, Execution, ExecutionSource, Run, RunSummary, Subject, new_id
from .errors import InvalidCursor

T = TypeVar("T")
# Which count of an execution a finished run is in.
COUNT_OF: Mapping[Outcome, str] = {
    "pass": "passed",
    "fail": "failed",
    "error": "errored",
    "unasserted": "unasserted",
}


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Part of a list, newest first. ``cursor`` continues it; none means that this was the end."""

    items: list[T]
    cursor: str | None = None


async def every_item(read: Callable[[str | None], Awaitable[Page[T]]]) -> AsyncIterator[T]:
    """The items of a list, page by page; ``read`` takes the cursor of a page."""
    cursor: str | None = None
    while True:
        page = await read(cursor)
        for item in page.items:
            yield item
        cursor = page.cursor
        if cursor is None:
            return


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
    """What a list is narrowed to; what is not given does not narrow. ``until`` itself is left out.

    ``labels`` are ``key=value`` or ``key``. ``whole`` leaves out executions that are partial or
    replayed, and those whose conversations were not held live. ``rescored_from`` is an execution.
    ``said``, ``evaluator`` (with its ``verdict``) and ``metric`` (within its range) look into what runs hold.
    """

    status: str | None = None
    outcome: Outcome | None = None
    eval_id: str | None = None
    execution_id: str | None = None
    scenario_id: str | None = None
    connector_id: str | None = None
    persona_id: str | None = None
    case_name: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None
    tags: Sequence[str] = ()
    labels: Sequence[str] = ()
    whole: bool = False
    source: ExecutionSource | None = None
    rescored_from: str | None = None
    fault: str | None = None
    said: str | None = None
    evaluator: str | None = None
    verdict: str | None = None
    metric: str | None = None
    metric_min: float | None = None
    metric_max: float | None = None


EVERYTHING = Filters()


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

    @property
    def case_hash(self) -> str | None:
        return None if self.case is None else Snapshot.of(self.case).hash


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
    answer_hash: str | None = None
    simulator_tokens: int | None = None
    judge_tokens: int | None = None
    agent_cost: float | None = None
    simulator_cost: float | None = None
    judge_cost: float | None = None

    @property
    def total_tokens(self) -> int | None:
        return self.tokens_usage.total_tokens if self.tokens_usage else None


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that was held outside the queue, with its turns and how it ended."""

    run: NewRun
    turns: Sequence[Turn]
    ending: RunEnding


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


class RepetitionCounts(NamedTuple):
    """What the repetitions of one subject in one execution came to."""

    passed: int
    failed: int
    errored: int


@dataclass(frozen=True, slots=True)
class Tally:
    """Runs of one execution, scenario, persona, connector or tag in figures. Sums cover finished runs only.

    ``subjects`` says of how many subjects the repetitions came to what: rates need it for their intervals.
    """

    id: str | None
    name: str | None
    counts: Counts
    subjects: Mapping[RepetitionCounts, int]
    mean_latency_ms: float | None
    max_latency_ms: float | None
    mean_score: float | None
    total_tokens: int | None
    total_cost: float | None


@dataclass(frozen=True, slots=True)
class Spending:
    """What finished runs used beside the agent's tokens. Each sum covers the runs of which it is known."""

    finished: int = 0
    known: Mapping[str, int] = field(default_factory=dict[str, int])
    sums: Mapping[str, float] = field(default_factory=dict[str, float])


GroupedBy = Literal["scenario", "persona", "connector", "tag"]


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs of one subject in one execution that came to the same."""

    execution_id: str
    subject: Subject
    status: str
    outcome: Outcome | None
    fault: str | None
    runs: int
    max_latency_ms: float | None
    tokens: int | None
    runs_with_tokens: int
    spent: Spending = field(default_factory=lambda: Spending())


class Spent(NamedTuple):
    """What finished runs have used, where it is known."""

    runs: int
    tokens: int
    cost: float


class Records(Protocol):
    """What a project holds and what was run in it: to look at, to do again, to clear away."""

    async def list_of(
        self,
        kind: DefinitionKind,
        filters: Filters = EVERYTHING,
        *,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[AnyStored]: ...
    async def execution(self, execution_id: str, /) -> Execution: ...
    async def executions(
        self, filters: Filters = EVERYTHING, *, cursor: str | None = None, limit: int = 50
    ) -> Page[Execution]: ...
    async def run(self, run_id: str, /, *, attempt: int | None = None) -> Run: ...
    async def runs(
        self, filters: Filters = EVERYTHING, *, cursor: str | None = None, limit: int = 50
    ) -> Page[RunSummary]: ...
    async def runs_with_outputs(
        self, execution_id: str, /, *, after: str = "", limit: int = 200, findings: bool = True
    ) -> list[tuple[RunSummary, RunOutput | None]]: ...
    async def cancel(
        self, *, execution_id: str | None = None, run_ids: Sequence[str] | None = None
    ) -> int: ...
    async def retry(
        self, *, execution_id: str | None = None, run_ids: Sequence[str] | None = None
    ) -> int: ...
    async def delete_execution(self, execution_id: str, /) -> int: ...
    async def delete_runs(self, run_ids: Sequence[str]) -> int: ...


def all_runs(records: Records, filters: Filters) -> AsyncIterator[RunSummary]:
    """Every run that fits."""
    return every_item(lambda cursor: records.runs(filters, cursor=cursor, limit=500))
