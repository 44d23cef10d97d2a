"""Reviews on a cluster: workers judge conversations, and the command stores their runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from ..execution.reviewing import ReviewedScenario
from ..execution.reviews import JudgeConversation, Judged, ReviewJob, ReviewRequest, judge_here
from ..execution.workspace import Workspace, open_workspace
from ..project.config import ExecutionSettings
from .connection import open_cluster
from .pool import ActorPool
from .sending import SentConfig, project_folder, sent_config


class ReviewActor:
    """Judges conversations by the scenarios of one review."""

    def __init__(self, project: SentConfig, request: ReviewRequest) -> None:
        self._project, self._request = project, request
        self._open = AsyncExitStack()
        self._workspace: Workspace | None = None
        self._scenarios: list[ReviewedScenario] = []

    async def ready(self) -> None:
        self._project.enter()
        workspace = await self._open.enter_async_context(open_workspace(self._project.config_path))
        self._scenarios = [ReviewedScenario.of(workspace, one) for one in self._request.scenarios]
        self._workspace = workspace

    async def judge(self, job: ReviewJob) -> Judged:
        assert self._workspace is not None
        return await judge_here(self._workspace, self._scenarios, job)


@asynccontextmanager
async def reviewers(
    config_path: Path,
    settings: ExecutionSettings,
    request: ReviewRequest,
    concurrency: int,
    workers: int | None = None,
) -> AsyncGenerator[tuple[JudgeConversation, int]]:
    """What judges conversations on a cluster, and how many it takes at once."""
    with open_cluster(settings, workers, project_folder(config_path)) as cluster:
        project, count = sent_config(config_path, cluster), workers or cluster.cpus
        actor = cluster.ray.remote(ReviewActor).options(
            num_cpus=1, max_concurrency=concurrency, scheduling_strategy="SPREAD"
        )
        pool = ActorPool(cluster.ray, lambda: actor.remote(project, request), count, at_once=concurrency)

        async def judge(job: ReviewJob) -> Any:
            return await pool.call("judge", job)

        try:
            yield judge, count * concurrency
        finally:
            pool.close()
