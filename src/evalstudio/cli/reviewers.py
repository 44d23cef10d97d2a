"""Who judges the recorded conversations of ``evalstudio review``: this process, or a server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..base.lazy_dataclass import dataclass
from .output import fail, plain
from .project import LocalProject, Project, RemoteProject, open_registry
from .where import project_cluster

if TYPE_CHECKING:
    from ..execution.reviews import Follow, JudgeConversation, Review, ReviewRequest
    from ..project.config import ExecutionSettings
    from ..project.entities import Execution
    from ..project.requirements import Requirement
    from ..recordings.conversation import RecordedConversation
    from ..recordings.reading import Read

# A server takes 10 MB at once; a conversation may be larger than the rest of its group.
_MOST_BYTES = 4_000_000
_TOO_LARGE = 413


@dataclass(frozen=True, slots=True)
class Measure:
    """What to review by: exactly one of the three."""

    eval: str | None
    scenario: str | None
    plan: Path | None

    def check(self) -> None:
        if sum(one is not None for one in (self.eval, self.scenario, self.plan)) != 1:
            raise fail("say what to review by: --eval NAME, --scenario NAME or --plan FILE, one of them")

    async def request(self, project: LocalProject) -> ReviewRequest:
        from ..execution.review_request import request_by_eval, request_by_plan, request_by_scenario
        from .eval_start import find_eval

        workspace = project.workspace
        if self.plan is not None:
            return request_by_plan(workspace.registry, self.plan)
        if self.scenario is not None:
            return await request_by_scenario(workspace, self.scenario)
        return await request_by_eval(workspace, await find_eval(workspace.store, self.eval))

    async def body(self, project: RemoteProject) -> tuple[dict[str, Any], Sequence[Requirement]]:
        """The same for a server, which knows things by their ids, and what a plan requires."""
        from ..execution.review_request import request_by_plan
        from .eval_start import find_eval

        if self.plan is not None:
            request = request_by_plan(open_registry(None), self.plan)
            return evaluators_of(request), request.requirements
        if self.scenario is not None:
            return {"scenarioId": await scenario_id(project, self.scenario)}, ()
        return {"evalId": (await find_eval(project.records, self.eval)).id}, ()


def evaluators_of(request: ReviewRequest) -> dict[str, Any]:
    """The evaluators and criteria of a plan, as the API takes them."""
    (scenario,) = request.scenarios
    told = scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {name: told[name] for name in ("name", "evaluators", "criteria") if name in told}


async def scenario_id(project: RemoteProject, name: str) -> str:
    """The id of the scenario of this name or id."""
    from ..execution.definitions import find, load_project_state

    state = await load_project_state(project.records)
    return state.entity(find(state, "scenario", name).key).id


class Reviewer(Protocol):
    async def execution(self, resume: str | None) -> Execution: ...
    async def review(
        self, execution: Execution, conversations: Iterator[Read], stop: asyncio.Event, follow: Follow
    ) -> Review: ...


async def opened_reviewer(
    project: Project,
    measure: Measure,
    labels: Mapping[str, str],
    requirements: Sequence[Requirement],
    concurrency: int | None,
    on: str | None,
) -> Reviewer:
    if isinstance(project, LocalProject):
        request = await measure.request(project)
        request = replace(request, labels=dict(labels), requirements=[*request.requirements, *requirements])
        return _ReviewerHere(project, request, concurrency, project_cluster(project, on))
    assert isinstance(project, RemoteProject)
    body, own = await measure.body(project)
    return _ReviewerThere(project, body, labels, [*own, *requirements])


@dataclass(frozen=True, slots=True)
class _ReviewerHere:
    project: LocalProject
    request: ReviewRequest
    concurrency: int | None
    cluster: ExecutionSettings | None

    async def execution(self, resume: str | None) -> Execution:
        from ..execution.reviews import begin_review, resumed_review

        if resume is not None:
            return await resumed_review(self.project.workspace, resume)
        return await begin_review(self.project.workspace, self.request)

    async def review(
        self, execution: Execution, conversations: Iterator[Read], stop: asyncio.Event, follow: Follow
    ) -> Review:
        from ..execution.reviews import review_conversations

        async with self._judges() as (judge, most):
            return await review_conversations(
                self.project.workspace,
                self.request,
                execution,
                conversations,
                concurrency=most,
                stop=stop,
                follow=follow,
                judge=judge,
            )

    @asynccontextmanager
    async def _judges(self) -> AsyncGenerator[tuple[JudgeConversation | None, int | None]]:
        """Who judges conversations, this process where nobody is named, and how many at once."""
        if self.cluster is None:
            yield None, self.concurrency
            return
        from ..cluster.reviewing import reviewers

        each = self.concurrency or self.project.workspace.config.max_concurrency
        async with reviewers(self.project.config_path, self.cluster, self.request, each) as judges:
            yield judges


class _ReviewerThere:
    """Reads here and sends what was read, a group at a time: a server has not the files."""

    def __init__(
        self,
        project: RemoteProject,
        measure: Mapping[str, Any],
        labels: Mapping[str, str],
        requirements: Sequence[Requirement],
    ) -> None:
        self._client, self._measure = project.client, measure
        self._labels, self._requirements = labels, requirements
        # The server sees a group at a time, and repetitions are of the whole.
        self._repetitions: Counter[tuple[str | None, str]] = Counter()

    async def execution(self, resume: str | None) -> Execution:
        from uuid import uuid4

        from ..execution.labels import automatic_labels

        if resume is not None:
            return await self._client.execution(resume)
        return await self._client.begin_review(
            **self._measure,
            labels={**automatic_labels(Path.cwd()), **self._labels},
            requirements=[plain(one) for one in self._requirements],
            trigger="cli",
            key=uuid4().hex,
        )

    async def review(
        self, execution: Execution, conversations: Iterator[Read], stop: asyncio.Event, follow: Follow
    ) -> Review:
        from ..execution.reviews import Review

        review = Review(execution)
        groups = self._groups(conversations, review)
        while (group := await asyncio.to_thread(next, groups, None)) is not None and not stop.is_set():
            await self._send(review, group)
            follow(review)
        review.stopped = stop.is_set()
        if not review.stopped:
            await self._send(review, [], isLast=True, unreadable=review.bad > 0)
        return review

    def _groups(self, conversations: Iterator[Read], review: Review) -> Iterator[list[dict[str, Any]]]:
        """What was read, as documents; what cannot be is told here and not sent."""
        from ..base.json_text import json_bytes
        from ..execution.reviews import GROUP
        from ..recordings.own_export import written
        from ..recordings.reading import Unreadable

        group, size = list[dict[str, Any]](), 0
        for item in conversations:
            review.read += 1
            if isinstance(item, Unreadable):
                review.refuse(item)
                continue
            document = written(self._counted(item))
            length = len(json_bytes(document))
            if group and (len(group) == GROUP or size + length > _MOST_BYTES):
                yield group
                group, size = [], 0
            group.append(document)
            size += length
        if group:
            yield group

    def _counted(self, conversation: RecordedConversation) -> RecordedConversation:
        if conversation.task_id is not None:
            subject = (conversation.agent, conversation.task_id)
            self._repetitions[subject] += 1
            conversation.repetition = self._repetitions[subject]
        return conversation

    async def _send(self, review: Review, group: Sequence[Mapping[str, Any]], **more: Any) -> None:
        from ..client import ServerError
        from ..project.entities import Execution
        from ..recordings.reading import Unreadable

        try:
            answer = await self._client.review_more(review.execution.id, group, **self._measure, **more)
        except ServerError as error:
            if error.status != _TOO_LARGE or len(group) != 1:
                raise
            recording: Mapping[str, Any] = group[0]["recording"]
            review.refuse(Unreadable(recording.get("origin") or recording["id"], None, str(error)))
            return
        review.execution = Execution.model_validate(answer["execution"])
        review.reviewed += answer["reviewed"]
        review.known += answer["known"]
        for problem in answer["refused"]:
            origin, _, reason = str(problem).partition(": ")
            review.refuse(Unreadable(origin, None, reason))
