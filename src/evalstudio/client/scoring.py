"""Scoring datasets on a server, and reading what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ..base.lazy_dataclass import dataclass
from ..execution.project_files import FileEntry, ScoringSources
from ..execution.scored_files import ScoredFile
from ..execution.scoring_plans import PlanCheck, PlanFile
from ..execution.scorings import Scoring

_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class AsyncScorings:
    """The scorings of a server. ``compare`` of the client compares two results files too."""

    call: Callable[..., Awaitable[Any]]

    async def sources(self) -> ScoringSources:
        """The datasets and plans in the project folder there."""
        return ScoringSources.model_validate(await self.call("GET", "/api/scoring/sources"))

    async def plan(self, path: str) -> PlanFile:
        """A plan in the project folder there, and what is wrong with it."""
        return PlanFile.model_validate(await self.call("GET", "/api/scoring/plan", query={"path": path}))

    async def check_plan(self, plan: str | Mapping[str, Any]) -> PlanCheck:
        """What is wrong with a plan, given as YAML or as its settings."""
        body = {"text": plan} if isinstance(plan, str) else {"plan": dict(plan)}
        return PlanCheck.model_validate(await self.call("POST", "/api/scoring/plan/check", body=body))

    async def start(self, *, key: str | None = None, **request: Any) -> Scoring:
        """Score ``dataset`` or ``upload`` (``name``, ``text``) by ``plan`` or ``planText``.

        ``dataset`` and ``plan`` are files of the project there. More: ``limit``, ``skipBad``. It goes on
        after the answer; ``wait`` waits for its end. With the same ``key`` it is started once.
        """
        return Scoring.model_validate(await self.call("POST", "/api/scoring/jobs", body=request, key=key))

    async def list(self) -> list[Scoring]:
        """All of them, the newest first."""
        return [Scoring.model_validate(one) for one in await self.call("GET", "/api/scoring/jobs")]

    async def get(self, scoring_id: str) -> Scoring:
        return Scoring.model_validate(await self.call("GET", f"/api/scoring/jobs/{scoring_id}"))

    async def wait(self, scoring_id: str, *, timeout: float | None = None) -> Scoring:
        """Wait until a scoring is over."""
        async with asyncio.timeout(timeout):
            while True:
                scoring = await self.get(scoring_id)
                if scoring.status != "running":
                    return scoring
                await asyncio.sleep(_POLL_SECONDS)

    async def cancel(self, scoring_id: str) -> Scoring:
        """End one that is under way; its results until then are kept."""
        answer = await self.call("POST", f"/api/scoring/jobs/{scoring_id}/cancel")
        return Scoring.model_validate(answer)

    async def delete(self, scoring_id: str) -> None:
        """Delete one that is over, with its results."""
        await self.call("DELETE", f"/api/scoring/jobs/{scoring_id}")

    async def files(self) -> list[FileEntry]:
        """The results files in the project folder, the newest first."""
        return [FileEntry.model_validate(one) for one in await self.call("GET", "/api/scoring/files")]

    async def results(
        self, path: str, *, outcome: str | None = None, record: str | None = None
    ) -> ScoredFile:
        """What a results file comes to, and its first records: those of an outcome or an id, if given."""
        query = {"path": path, "outcome": outcome, "record": record}
        return ScoredFile.model_validate(await self.call("GET", "/api/scoring/results", query=query))
