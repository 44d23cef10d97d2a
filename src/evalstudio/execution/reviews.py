"""Reviews: many recorded conversations as the runs of one execution, in memory that does not grow with them.

Conversations are read, judged and stored in groups. A run's id follows from the conversation's, so that a
review that was stopped goes on without judging anything twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import field
from functools import partial
from itertools import islice
from typing import Any

from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput
from ..connectors.contract import ConnectorError
from ..conversation.definitions import Scenario
from ..project.entities import UNFINISHED, Execution, StoredEval, derived_id, name_key
from ..project.requirements import Requirement
from ..recordings.conversation import RecordedConversation
from ..recordings.reading import Read, Unreadable
from ..storage.contract import FinishedRun, IdempotencyKey, Snapshot
from .environment import environment_snapshot
from .labels import with_automatic_labels
from .reviewing import ReviewedScenario, review_one
from .tracing import trace_execution
from .workspace import Workspace

GROUP = 64
# A group ends with its slowest conversation: where many are judged at once, groups are larger.
_GROUP_ROUNDS = 4
_MOST_TOLD = 100
UNREADABLE = "unreadable"

Follow = Callable[["Review"], None]


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """What to hold recorded conversations against."""

    scenarios: Sequence[Scenario]
    eval: StoredEval | None = None
    trigger: str = "cli"
    labels: dict[str, Any] = field(default_factory=dict[str, Any])
    requirements: Sequence[Requirement] = ()


@dataclass(slots=True)
class Review:
    """How far a review has come. Of what could not be read, the first hundred are told."""

    execution: Execution
    read: int = 0
    reviewed: int = 0
    known: int = 0
    """How many were stored by an earlier start of the same review."""
    bad: int = 0
    unreadable: list[Unreadable] = field(default_factory=list[Unreadable])
    stopped: bool = False

    def refuse(self, problem: Unreadable) -> None:
        self.bad += 1
        if len(self.unreadable) < _MOST_TOLD:
            self.unreadable.append(problem)


async def begin_review(
    workspace: Workspace, request: ReviewRequest, *, once: IdempotencyKey | None = None
) -> Execution:
    """The execution that a review's runs will be of: kept, and marked as unfinished until they are."""
    if not request.scenarios:
        raise InvalidInput("there is nothing to review by; name an eval, a scenario or a plan")
    execution = Execution(
        eval_id=request.eval.id if request.eval else None,
        eval_name=request.eval.name if request.eval else None,
        trigger=request.trigger,
        labels=await with_automatic_labels(request.labels, workspace.folder),
        partial=UNFINISHED,
        requirements=[*request.requirements],
        source="recorded",
    )
    environment = await _environment(workspace, request)
    return await workspace.store.record(execution, [], environment=environment, once=once)


async def _environment(workspace: Workspace, request: ReviewRequest) -> Snapshot:
    return await asyncio.to_thread(environment_snapshot, workspace, request.scenarios, ())


async def resumed_review(workspace: Workspace, execution_id: str) -> Execution:
    """The execution of a review that is to go on."""
    execution = await workspace.store.execution(execution_id)
    if execution.source != "recorded":
        message = f"execution {execution_id} is {execution.source}, not a review of recorded conversations"
        raise InvalidInput(f"{message}; only such a review can be resumed")
    return execution


async def review_conversations(
    workspace: Workspace,
    request: ReviewRequest,
    execution: Execution,
    conversations: Iterator[Read],
    *,
    concurrency: int | None = None,
    stop: asyncio.Event | None = None,
    follow: Follow | None = None,
    judge: JudgeConversation | None = None,
    is_last: bool = True,
) -> Review:
    """Judge conversations and store them as runs, a group at a time, until none is left or it is stopped.

    What is under way when it is stopped is finished and stored; the execution stays marked as unfinished, as
    it does where these are not the last ones. They are judged here unless ``judge`` has somebody else do it.
    """
    most = concurrency or workspace.config.max_concurrency
    work = _Work(workspace, request, execution, most, stop, judge)
    review, store = Review(execution), workspace.store
    async for items in _groups(conversations, max(GROUP, most * _GROUP_ROUNDS)):
        if work.is_stopped:
            break
        finished = await work.judge(items, review)
        if finished:
            review.execution = await store.record(execution, finished)
        review.reviewed += len(finished)
        if follow is not None:
            follow(review)
    if review.bad:
        await store.mark_partial(execution.id, UNREADABLE)
    review.stopped = work.is_stopped
    if is_last and not review.stopped:
        review.execution = await store.finish_recording(execution.id)
        await trace_execution(workspace.telemetry, store, execution.id)
    return review


async def _groups(conversations: Iterator[Read], size: int) -> AsyncIterator[list[Read]]:
    """Conversations in groups, read in a thread: a server has others to answer meanwhile."""
    while items := await asyncio.to_thread(lambda: list(islice(conversations, size))):
        yield items


@dataclass(frozen=True, slots=True)
class ReviewJob:
    """A conversation that is to be judged, by which of the scenarios, and as what."""

    execution: Execution
    conversation: RecordedConversation
    scenario: int
    repetition: int
    run_id: str


Judged = FinishedRun | Unreadable
JudgeConversation = Callable[[ReviewJob], Awaitable[Judged]]


async def judge_here(workspace: Workspace, scenarios: Sequence[ReviewedScenario], job: ReviewJob) -> Judged:
    """Judge one conversation in this process."""
    try:
        return await review_one(
            workspace,
            scenarios[job.scenario],
            job.conversation,
            repetition=job.repetition,
            run_id=job.run_id,
            execution=job.execution,
        )
    except (InvalidInput, ConnectorError) as error:
        return _refused(job.conversation, error)


class _Work:
    """Judges groups of conversations by the scenarios of a request."""

    def __init__(
        self,
        workspace: Workspace,
        request: ReviewRequest,
        execution: Execution,
        concurrency: int,
        stop: asyncio.Event | None,
        judge: JudgeConversation | None,
    ) -> None:
        self._workspace, self._execution = workspace, execution
        self._all = [ReviewedScenario.of(workspace, one) for one in request.scenarios]
        self._numbers = {id(one): number for number, one in enumerate(self._all)}
        self._scenarios = ScenarioChoice(self._all)
        self._judge_one = judge or partial(judge_here, workspace, self._all)
        self._limit = asyncio.Semaphore(concurrency)
        self._stop = stop
        # Repetitions are of tasks: what names no task is repeated by nothing.
        self._repetitions: Counter[tuple[str, str | None, str]] = Counter()

    @property
    def is_stopped(self) -> bool:
        return self._stop is not None and self._stop.is_set()

    async def judge(self, items: Sequence[Read], review: Review) -> list[FinishedRun]:
        """The finished runs of a group; what is stored already is left out, what cannot be read is noted."""
        jobs: dict[str, ReviewJob] = {}
        for item in items:
            review.read += 1
            job = self._job(item)
            if isinstance(job, ReviewJob) and job.run_id not in jobs:
                jobs[job.run_id] = job
            else:
                review.refuse(job if isinstance(job, Unreadable) else _twice(job.conversation))
        known = await self._workspace.store.known_runs([*jobs])
        review.known += len(known)
        judged = await asyncio.gather(*(self._judge(job) for key, job in jobs.items() if key not in known))
        for problem in judged:
            if isinstance(problem, Unreadable):
                review.refuse(problem)
        return [one for one in judged if isinstance(one, FinishedRun)]

    def _job(self, item: Read) -> ReviewJob | Unreadable:
        if isinstance(item, Unreadable):
            return item
        try:
            scenario = self._scenarios.of(item)
        except InvalidInput as error:
            return _refused(item, error)
        repetition = 1
        if item.task_id is not None:
            subject = (scenario.scenario.name, item.agent, item.task_id)
            self._repetitions[subject] += 1
            repetition = item.repetition or self._repetitions[subject]
        number, run_id = self._numbers[id(scenario)], derived_id(self._execution.id, item.id)
        return ReviewJob(self._execution, item, number, repetition, run_id)

    async def _judge(self, job: ReviewJob) -> Judged | None:
        async with self._limit:
            return None if self.is_stopped else await self._judge_one(job)


def _refused(conversation: RecordedConversation, error: Exception) -> Unreadable:
    return Unreadable(conversation.origin or conversation.id, None, str(error))


def _twice(conversation: RecordedConversation) -> Unreadable:
    reason = f'another conversation has the id "{conversation.id[:80]}" too'
    return Unreadable(conversation.origin or conversation.id, None, reason)


class ScenarioChoice:
    """Which of several scenarios a conversation is judged by.

    That which it names (``scenario`` in its metadata, or its task), that which has its task among its cases,
    that which shares its tags; with a single scenario, always that.
    """

    def __init__(self, scenarios: Sequence[ReviewedScenario]) -> None:
        self._all = scenarios
        self._by_name = {name_key(one.scenario.name): one for one in scenarios}

    def of(self, conversation: RecordedConversation) -> ReviewedScenario:
        if len(self._all) == 1:
            return self._all[0]
        task, tags = conversation.task_id or conversation.id, {name_key(tag) for tag in conversation.tags}
        for name in (conversation.metadata.get("scenario"), task):
            if isinstance(name, str) and (named := self._by_name.get(name_key(name))):
                return named
        choices = [one for one in self._all if task in one.cases] or [
            one for one in self._all if tags & {name_key(tag) for tag in one.scenario.tags}
        ]
        if len(choices) == 1:
            return choices[0]
        raise InvalidInput(self._why(choices))

    def _why(self, choices: Sequence[ReviewedScenario]) -> str:
        names = ", ".join(sorted(one.scenario.name for one in choices or self._all))
        which = "several scenarios fit" if choices else "no scenario fits"
        advice = "say which by its taskId, a tag or scenario in its metadata, or use --scenario"
        return f"{which} it; {advice}. There are: {names}"
