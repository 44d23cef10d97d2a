"""Holding conversations in a test, by the same code as ``eval run``, with turns kept in memory.

Everything that belongs to an event loop is opened for one call and closed after it: tests come with loops of
their own. What a project's plugins register is loaded once.
"""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest

from ..evaluators.results import Turn
from ..execution.file_definitions import OverlaidStore
from ..execution.request import ExecutionRequest, checked_runs
from ..execution.run_worker import RunWorker
from ..execution.workspace import LazyPlugins, Workspace, open_workspace
from ..llm.client import Llm
from ..llm.settings import LlmSettings
from ..plugins.registry import Definition
from ..project.changes import ProjectState
from ..project.config import find_config, read_config
from ..project.entities import RunSummary
from ..storage.contract import ClaimedRun, FinishedRun, Lease, NewRun

if TYPE_CHECKING:
    from ..storage.store import SqlStore

_ENGINE = pytest.StashKey["Engine"]()
_WORKER = "pytest"


class _Turns:
    """All of a store that a conversation needs."""

    def __init__(self) -> None:
        self.of_run: dict[str, list[Turn]] = defaultdict(list)

    async def append_turn(self, lease: Lease, turn: Turn) -> None:
        self.of_run[lease.run_id].append(turn)


class Engine:
    """What the tests of one process share: the project, if there is one, and its plugins."""

    def __init__(self, config: pytest.Config) -> None:
        self.config_path = project_config(config)
        self.root = config.rootpath
        self.plugins = LazyPlugins(self.config_path, tolerant=False)

    @classmethod
    def of(cls, config: pytest.Config) -> Engine:
        if _ENGINE not in config.stash:
            config.stash[_ENGINE] = cls(config)
        return config.stash[_ENGINE]

    @property
    def folder(self) -> Path:
        """Where relative paths in definitions start."""
        return self.config_path.resolve().parent if self.config_path else self.root

    @property
    def repetitions(self) -> int:
        """How often an eval repeats that does not say so itself."""
        return (read_config(self.config_path).defaults.repetitions if self.config_path else None) or 1

    async def run(
        self,
        request: ExecutionRequest,
        state: ProjectState,
        *,
        definitions: Sequence[Definition] = (),
        llm: Any = None,
        at_once: int | None = 1,
    ) -> list[FinishedRun]:
        """Hold the conversations of a request; at most ``at_once``, or what the project allows."""
        turns = _Turns()
        async with self._opened(cast("SqlStore", OverlaidStore(cast(Any, turns), state)), llm) as workspace:
            workspace = replace(workspace, plugins=_with(self.plugins, definitions))
            runs = [run async for run in checked_runs(workspace, request)]
            limit = asyncio.Semaphore(at_once or workspace.config.max_concurrency)
            worker = RunWorker(workspace)
            snapshots = _Snapshots()

            async def hold(run: NewRun) -> FinishedRun:
                async with limit:
                    ending = await worker.execute(snapshots.claimed(run))
                sys.stdout.write(ending.output.get("log", ""))
                return FinishedRun(run, turns.of_run[run.id], ending)

            return list(await asyncio.gather(*map(hold, runs)))

    @asynccontextmanager
    async def _opened(self, store: SqlStore, llm: Any) -> AsyncGenerator[Workspace]:
        opened = open_workspace(self.config_path, lazy=True, store=store, plugins=self.plugins)
        async with opened as workspace:
            workspace.folder = self.folder
            if llm is None:
                yield workspace
                return
            settings = LlmSettings.model_validate(llm)
            workspace.config = workspace.config.model_copy(update={"llm_settings": settings})
            async with Llm(settings) as model:
                workspace.llm = model
                yield workspace


def _with(plugins: LazyPlugins, definitions: Sequence[Definition]) -> LazyPlugins:
    """The plugins, and definitions that live in the code of a test."""
    extended = LazyPlugins(None, tolerant=False)
    extended.registry = plugins.registry.extended(definitions)
    return extended


class _Snapshots:
    """Runs as a worker gets them from the queue; those that share a snapshot share its content too."""

    def __init__(self) -> None:
        self._bodies: dict[str, Mapping[str, Any]] = {}

    def claimed(self, run: NewRun) -> ClaimedRun:
        summary = RunSummary(
            id=run.id,
            execution_id="",
            scenario_id=run.scenario_id,
            scenario_name=run.scenario_name,
            persona_id=run.persona_id,
            persona_name=run.persona_name,
            connector_id=run.connector_id,
            connector_name=run.connector_name,
            case_name=run.case["name"] if run.case else None,
            repetition=run.repetition,
            status="running",
        )
        return ClaimedRun(
            lease=Lease(run.id, 1, _WORKER),
            run=summary,
            case=dict(run.case) if run.case is not None else None,
            scenario=self._body(run.scenario.hash, run.scenario.body),
            persona=self._body(run.persona.hash, run.persona.body) if run.persona else None,
            connector=self._body(run.connector.hash, run.connector.body),
        )

    def _body(self, key: str, text: str) -> Mapping[str, Any]:
        return self._bodies.setdefault(key, orjson.loads(text))


def project_config(config: pytest.Config) -> Path | None:
    """The config file of the project under test: the one that is named, else the nearest to the rootdir."""
    named = config.getoption("evalstudio_config") or config.getini("evalstudio_config")
    return config.rootpath / named if named else find_config(config.rootpath)
