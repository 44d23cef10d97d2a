"""Results on their way from tests into the project's database: attached to reports, kept by one process.

Reports are what xdist brings from its workers to the process that was started, so that a session is one
execution, however many processes it ran in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import orjson
import pytest
from pydantic import TypeAdapter

from ..base.concurrency import run_sync
from ..base.json_text import json_text
from ..base.problems import InvalidInput
from ..base.text import counted
from ..evaluators.results import Finding, Turn, Verdict
from ..execution.definitions import load_project_state
from ..execution.labels import automatic_labels
from ..messages import Message, TokensUsage
from ..project.changes import ProjectState
from ..project.config import read_config
from ..project.entities import Execution, name_key
from ..project.secrets import SecretBox
from ..storage.contract import FinishedRun, NewRun, RunEnding, Snapshot
from ..storage.errors import StorageError
from ..storage.opening import open_store
from .engine import Engine, project_config
from .results import ScenarioResult, run_result

_ATTRIBUTE = "evalstudio_runs"
_LEFT_OUT = "evalstudio_left_out"
_MESSAGES, _FINDINGS = TypeAdapter(list[Message]), TypeAdapter(list[Finding])
_SNAPSHOTS: tuple[Literal["scenario", "connector", "persona"], ...] = ("scenario", "connector", "persona")


def attach(runs: Sequence[FinishedRun], report: pytest.TestReport, config: pytest.Config) -> None:
    """Tell what did not pass where a test failed; put what it ran into its report if it is to be stored."""
    if config.getoption("evalstudio_store"):
        # Sealed before it leaves: other plugins write reports to files.
        box = _box(Engine.of(config).folder)
        setattr(report, _ATTRIBUTE, json_text([to_json(run, box) for run in runs]))
    failed = ScenarioResult([run_result(run, repeated=run.run.repetition > 1) for run in runs])
    is_told = isinstance(report.longrepr, str)
    if report.failed and not failed.passed and not is_told:
        report.sections.append(("evalstudio: what did not pass", str(failed)))


def _box(folder: Path) -> SecretBox:
    return SecretBox(folder / "data" / "secret.key")


def to_json(finished: FinishedRun, box: SecretBox) -> dict[str, Any]:
    run, ending = finished.run, finished.ending
    turns = [*finished.turns, *([ending.last_turn] if ending.last_turn else [])]
    kept = {name: one.body for name in _SNAPSHOTS if (one := getattr(run, name)) is not None}
    snapshots = {name: box.seal(orjson.loads(body)) for name, body in kept.items()}
    names = [name for name in NewRun.__dataclass_fields__ if name not in _SNAPSHOTS]
    return {
        "run": {name: getattr(run, name) for name in names},
        "snapshots": snapshots,
        "turns": [_turn_json(turn) for turn in turns],
        "hasLast": ending.last_turn is not None,
        "verdict": ending.verdict.model_dump(mode="json", by_alias=True),
        "output": ending.output,
        "latencyMs": ending.latency_ms,
        "tokensUsage": ending.tokens_usage.model_dump() if ending.tokens_usage else None,
        "threadId": ending.thread_id,
        "error": ending.error,
        "final": [finding.to_json() for finding in ending.final_results],
    }


def _turn_json(turn: Turn) -> dict[str, Any]:
    spoken = turn.user_message.to_json() if turn.user_message else None
    return {"turn": turn.to_json(), "user": spoken, "messages": [one.to_json() for one in turn.messages]}


def from_json(fields: Mapping[str, Any]) -> FinishedRun:
    snapshots = {name: Snapshot.of(body) for name, body in fields["snapshots"].items()}
    turns = [_turn(one) for one in fields["turns"]]
    last = turns.pop() if fields["hasLast"] else None
    tokens = fields["tokensUsage"]
    ending = RunEnding(
        verdict=Verdict.model_validate(fields["verdict"]),
        output=fields["output"],
        latency_ms=fields["latencyMs"],
        tokens_usage=TokensUsage.model_validate(tokens) if tokens else None,
        thread_id=fields["threadId"],
        error=fields["error"],
        last_turn=last,
        final_results=_FINDINGS.validate_python(fields["final"]),
    )
    return FinishedRun(NewRun(**snapshots, **fields["run"]), turns, ending)


def _turn(fields: Mapping[str, Any]) -> Turn:
    turn = Turn.model_validate(fields["turn"])
    spoken = [fields["user"]] if fields["user"] else []
    turn.user_message = next(iter(_MESSAGES.validate_python(spoken)), None)
    turn.messages = _MESSAGES.validate_python(fields["messages"])
    return turn


class LeftOutTeller:
    """In a worker of xdist: tells the process that was started whether tests were left out."""

    def __init__(self, config: pytest.Config) -> None:
        self._output: dict[str, Any] = cast(Any, config).workeroutput

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self._output[_LEFT_OUT] = self._output.get(_LEFT_OUT, False) or bool(items)


class ResultKeeper:
    """Gathers the runs of a session and keeps them as one execution when it is over."""

    def __init__(self, config: pytest.Config) -> None:
        path = project_config(config)
        if path is None:
            raise pytest.UsageError('--evalstudio-store needs a project; make one with "evalstudio init"')
        self._path, self._runs = path, list[FinishedRun]()
        self._told = ""
        self._left_out = False

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """With -k, -m or --lf the session is not all of its tests."""
        self._left_out = self._left_out or bool(items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Under xdist the workers leave tests out, and tell so when they end."""
        output: Mapping[str, Any] = getattr(node, "workeroutput", None) or {}
        self._left_out = self._left_out or bool(output.get(_LEFT_OUT))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._runs += map(from_json, orjson.loads(getattr(report, _ATTRIBUTE, "[]")))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self._runs:
            self._told = "nothing was run, so nothing is stored"
            return
        try:
            execution = run_sync(self._keep)
        except (InvalidInput, StorageError, OSError) as error:
            self._told = f"the results could not be stored: {error}"
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        else:
            runs = counted(execution.counts.total, "run")
            self._told = f"{runs} stored; see: evalstudio execution show {execution.id}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line(f"evalstudio: {self._told}")

    async def _keep(self) -> Execution:
        store = await open_store(read_config(self._path).storage, self._path.resolve().parent)
        try:
            state = await load_project_state(store)
            runs = [_known(one, state) for one in self._numbered()]
            folder = self._path.resolve().parent
            execution = Execution(
                trigger="pytest",
                labels={**automatic_labels(folder)},
                partial="only" if self._left_out else None,
            )
            return await store.record(execution, runs)
        finally:
            await store.close()

    def _numbered(self) -> list[FinishedRun]:
        """The runs with repetitions counted over the session: a test may run a subject again."""
        seen: Counter[tuple[Any, ...]] = Counter()
        numbered: list[FinishedRun] = []
        for one in self._runs:
            run = one.run
            case = run.case.get("name") if run.case else None
            subject = (run.scenario_id, case, run.persona_id, run.connector_id)
            seen[subject] += 1
            numbered.append(replace(one, run=replace(run, repetition=seen[subject])))
        return numbered


def _known(finished: FinishedRun, state: ProjectState) -> FinishedRun:
    """The run under the ids of what the project has stored by the same names."""
    run, ids = finished.run, dict[str, str]()
    for kind in _SNAPSHOTS:
        stored = state.entity((kind, name_key(getattr(run, f"{kind}_name") or "")))
        if stored is not None:
            ids[f"{kind}_id"] = stored.id
    return replace(finished, run=replace(run, **cast(Any, ids)))
