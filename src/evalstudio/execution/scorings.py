"""Scorings that a server does: started from the API, each in a process and a folder of its own.

``data/scorings/ID`` holds what was sent, what came of it (``scoring.json``) and the results file, which is
listed, opened and compared like one of ``evalstudio score -o``.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import re
import shutil
import signal
import sys
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

import orjson
from pydantic import Field, ValidationError

from ..base.files import mapping_of, parse_text
from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput, Problem
from ..project.entities import Moment
from ..project.yaml_text import to_yaml
from ..reporting.requirements import Standing
from ..reporting.statistics import Figure
from ..scoring.plan import ScoringJob, load_plan
from ..storage.contract import IdempotencyKey
from ..storage.errors import InUse, NotFound
from .project_files import DATASETS, MOST_FILES, OWN_FOLDER, PLANS, SCORINGS, UPLOADED, source_path
from .scoring_plans import PLAN_NAME, check_written
from .workspace import Workspace

MOST_AT_ONCE = 2
_STATE = "scoring.json"
_LOG = "log.txt"
_START = """import sys
sys.path.append(sys.argv[1])
from evalstudio.execution.scoring_process import serve
serve()"""
_PACKAGES = str(Path(__file__).parents[2])
_LONGEST_STEM = 40


class Scoring(Figure):
    """A dataset that is being scored by the server, or was."""

    id: str
    dataset: str = Field(description="Its path in the project, or the name it was uploaded by")
    plan: str = Field(description="Its path in the project, or plan.yaml for one that was written here")
    results: str = Field(description="The path of the results file in the project")
    plan_copy: str | None = Field(description="The path of a plan that was written here")
    status: Literal["running", "done", "failed", "cancelled", "interrupted"] = Field(
        description="interrupted: the server ended before the scoring did"
    )
    started_at: Moment
    ended_at: Moment | None = None
    share: float = Field(default=0.0, description="How much of the dataset is read, from 0 to 1")
    records: int = Field(default=0, description="How many are scored")
    bad: int = Field(default=0, description="Records that could not be read")
    problems: list[str] = Field(default=[], description="Why it failed")
    standing: Standing | None = Field(default=None, description="Whether the plan's thresholds were reached")
    remarks: list[str] = Field(default=[], description="Why it is not met")
    left_out: list[str] = Field(default=[], description="The first records that could not be read, and why")


@dataclass(frozen=True, slots=True)
class ScoringRequest:
    """What to score: a file of the project or a text, by a plan that is either."""

    dataset: str | None = None
    upload: tuple[str, str] | None = None
    """The name of a file and its text."""
    plan: str | None = None
    plan_text: str | None = None
    limit: int | None = None
    skip_bad: bool = False


@dataclass(slots=True)
class _Live:
    """A scoring under way."""

    scoring: Scoring
    task: asyncio.Task[None] | None = None
    cancelled: bool = False


@dataclass(slots=True)
class Scorings:
    """The scorings of one server."""

    workspace: Workspace
    _live: dict[str, _Live] = field(default_factory=dict[str, _Live])
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    @property
    def _folder(self) -> Path:
        return self.workspace.folder / OWN_FOLDER / SCORINGS

    async def start(self, request: ScoringRequest, *, once: IdempotencyKey | None = None) -> Scoring:
        """Begin to score; it goes on after the answer. What cannot be scored is refused here.

        A request that was made before is answered with its scoring.
        """
        # One after the other: the same request again finds the first, and no two take the last place.
        async with self._starting:
            return await self._start(request, once)

    async def _start(self, request: ScoringRequest, once: IdempotencyKey | None) -> Scoring:
        if (known := await self.workspace.store.made_by(once)) is not None:
            return await self.get(known)
        if len(self._live) >= MOST_AT_ONCE:
            raise InUse(f"{MOST_AT_ONCE} scorings are under way; wait for one to end, or cancel it.")
        dataset, plan = await asyncio.to_thread(self._checked, request)
        own = await asyncio.to_thread(_new_folder, self._folder, _name_of(request))
        scoring, job = await asyncio.to_thread(self._prepared, request, own, dataset, plan)
        live = self._live[scoring.id] = _Live(scoring)
        try:
            made = await self.workspace.store.remember_once(once, scoring.id)
        except BaseException:
            await self._forget(scoring.id)
            raise
        if made != scoring.id:
            await self._forget(scoring.id)
            return await self.get(made)
        live.task = asyncio.create_task(self._run(live, job), name=f"Scoring {scoring.id}")
        return scoring

    async def _forget(self, scoring_id: str) -> None:
        """Take back a scoring that was prepared and never begun."""
        del self._live[scoring_id]
        await asyncio.to_thread(shutil.rmtree, self._folder / scoring_id)

    def _checked(self, request: ScoringRequest) -> tuple[Path | None, Path | None]:
        """The files of the project that are named, if they are there; a text is checked as it stands."""
        folder, dataset, plan = self.workspace.folder, None, None
        if request.dataset is not None:
            dataset = source_path(folder, request.dataset, DATASETS, "dataset")
        elif request.upload is not None:
            _check_upload(*request.upload)
        if request.plan is not None:
            plan = source_path(folder, request.plan, PLANS, "plan")
            load_plan(folder / plan)
        elif request.plan_text is not None:
            try:
                check_written(self.workspace, request.plan_text)
            except InvalidInput as error:
                raise error.within("planText") from None
        return dataset, plan

    def _prepared(
        self, request: ScoringRequest, own: Path, dataset: Path | None, plan: Path | None
    ) -> tuple[Scoring, ScoringJob]:
        """Keep what was sent; all paths are relative to the project folder, where the process starts."""
        folder = self.workspace.folder
        at = own.relative_to(folder)
        if dataset is None and request.upload is not None:
            name, text = request.upload
            dataset = at / f"dataset{Path(name).suffix.lower()}"
            (folder / dataset).write_text(text, encoding="utf-8", newline="")
        copy = None
        if plan is None and request.plan_text is not None:
            copy = (at / PLAN_NAME).as_posix()
            plan = _keep_plan(folder, at, request.plan_text)
        assert dataset is not None
        assert plan is not None
        scoring = Scoring(
            id=own.name,
            dataset=request.dataset or (request.upload or ("", ""))[0],
            plan=request.plan or PLAN_NAME,
            results=(at / "results.jsonl").as_posix(),
            plan_copy=copy,
            status="running",
            started_at=datetime.now(UTC),
        )
        _write(own, scoring)
        return scoring, ScoringJob(
            dataset=dataset,
            plan_path=plan,
            output=Path(scoring.results),
            limit=request.limit,
            skip_bad=request.skip_bad,
            config_path=self.workspace.config_path,
            llm_settings=self.workspace.config.llm_settings,
        )

    async def _run(self, live: _Live, job: ScoringJob) -> None:
        own = self._folder / live.scoring.id
        ending: dict[str, Any] = {"status": "interrupted"}
        try:
            ending = await self._score(live, job, own)
        except asyncio.CancelledError:
            ending = {"status": "cancelled" if live.cancelled else "interrupted"}
        finally:
            fields = {**live.scoring.model_dump(by_alias=True), **ending, "endedAt": datetime.now(UTC)}
            _write(own, Scoring.model_validate(fields))
            del self._live[live.scoring.id]

    async def _score(self, live: _Live, job: ScoringJob, own: Path) -> dict[str, Any]:
        """What came of the process; it is ended with whoever waits for it."""
        log = await asyncio.to_thread(open, own / _LOG, "wb")
        with log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", _START, _PACKAGES),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                cwd=self.workspace.folder,
                start_new_session=True,
            )
        try:
            return await _followed(process, job, live) or {
                "status": "failed",
                "problems": [f"The process that scored it died; {_LOG} in {own.name} may say why."],
            }
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            if not (own / _LOG).stat().st_size:
                (own / _LOG).unlink()

    async def list(self) -> list[Scoring]:
        """All of them, the newest first."""
        return await asyncio.to_thread(self._list)

    def _list(self) -> list[Scoring]:
        folders = self._folder.iterdir() if self._folder.is_dir() else ()
        scorings = [one for path in folders if (one := self._read(path.name)) is not None]
        return sorted(scorings, key=lambda one: one.started_at, reverse=True)[:MOST_FILES]

    async def get(self, scoring_id: str) -> Scoring:
        scoring = await asyncio.to_thread(self._read, scoring_id)
        if scoring is None:
            raise NotFound("scoring", scoring_id)
        return scoring

    def _read(self, scoring_id: str) -> Scoring | None:
        live = self._live.get(scoring_id)
        if live is not None:
            return live.scoring
        try:
            scoring = Scoring.model_validate_json((self._folder / scoring_id / _STATE).read_bytes())
        except (OSError, ValidationError):
            return None
        # A server that was killed could not write down that its scorings ended with it.
        is_lost = scoring.status == "running"
        return scoring.model_copy(update={"status": "interrupted"}) if is_lost else scoring

    async def cancel(self, scoring_id: str) -> Scoring:
        """End a scoring; the results until then are kept, and whole."""
        live = self._live.get(scoring_id)
        if live is not None and live.task is not None:
            live.cancelled = True
            live.task.cancel()
            await asyncio.wait([live.task])
        return await self.get(scoring_id)

    async def delete(self, scoring_id: str) -> None:
        """Delete a scoring that is over, with its results."""
        await self.get(scoring_id)
        if scoring_id in self._live:
            raise InUse("It is under way; cancel it first.")
        await asyncio.to_thread(shutil.rmtree, self._folder / scoring_id)

    async def stop(self) -> None:
        """End what is under way, with the server."""
        tasks = [live.task for live in self._live.values() if live.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _followed(
    process: asyncio.subprocess.Process, job: ScoringJob, live: _Live
) -> dict[str, Any] | None:
    """Hand the job over and read how far it is; what came of it is the last line."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(pickle.dumps(job))
        await process.stdin.drain()
    async for line in process.stdout:
        message: dict[str, Any] = orjson.loads(line)
        if "status" in message:
            return message
        live.scoring = live.scoring.model_copy(update=message)
    return None


def _check_upload(name: str, text: str) -> None:
    if Path(name).suffix.lower() not in UPLOADED:
        hint = f"upload a file that ends with {', '.join(UPLOADED)}, or name one in the project folder"
        raise InvalidInput(Problem(f'"{name}" is of no kind that is read here', ("upload", "name"), hint))
    if not text.strip():
        raise InvalidInput(Problem("holds no records", ("upload", "text")))


def _keep_plan(folder: Path, at: Path, text: str) -> Path:
    """The plan as it was written; where it extends others, beside it one that finds them from there."""
    (folder / at / PLAN_NAME).write_text(text, encoding="utf-8")
    settings: dict[str, Any] = mapping_of(parse_text(text, PLAN_NAME, is_json=False), PLAN_NAME).data
    if not (bases := settings.get("extends")):
        return at / PLAN_NAME
    names = cast(list[str], bases if isinstance(bases, list) else [bases])
    extended = [os.path.relpath(folder / name, folder / at) for name in names]
    (folder / at / "extended.yaml").write_text(to_yaml({**settings, "extends": extended}), encoding="utf-8")
    return at / "extended.yaml"


def _name_of(request: ScoringRequest) -> str:
    name = Path(request.dataset or (request.upload or ("",))[0]).stem
    return re.sub(r"[^0-9A-Za-z]+", "-", name).strip("-")[:_LONGEST_STEM] or "dataset"


def _new_folder(parent: Path, name: str) -> Path:
    """A folder that is nobody else's, named after the dataset and the time."""
    stem = f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    for number in range(1, 1000):
        path = parent / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        return path
    raise InvalidInput("Too many scorings were started in one second; try again.")


def _write(own: Path, scoring: Scoring) -> None:
    """In one step, so that nobody reads half of it."""
    temporary = own / f"{_STATE}.new"
    temporary.write_text(scoring.model_dump_json(by_alias=True, indent=2))
    temporary.replace(own / _STATE)
