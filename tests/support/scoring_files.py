"""Datasets, plans and results in a folder, for tests that score them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from evalstudio.cli import main
from evalstudio.scoring.job import ScoringJob, score_dataset
from evalstudio.scoring.plan import ScoringPlan
from evalstudio.scoring.summary import DatasetSummary

# A plugin with an evaluator that fails to answer for some records while a file named broken lies beside it.
MOODY = """
from pathlib import Path
from evalstudio import define_evaluator

@define_evaluator("moody", kind="assertion")
def moody(ctx):
    if Path(__file__).with_name("broken").exists() and "7" in ctx.response:
        raise RuntimeError("not now")
    return {"success": "3" not in ctx.response}


@define_evaluator("words", kind="metric")
def words(ctx):
    return float(ctx.response.split()[-1])
"""
PLAN: dict[str, Any] = {
    "criteria": [{"name": "ok", "scale": "binary"}, {"name": "close", "scale": "numeric"}],
    "evaluators": [
        {"type": "rule-based", "config": {"rules": [{"criterionName": "ok", "type": "length", "min": 3}]}},
        {"type": "lexical-similarity", "config": {"criterionName": "close"}},
    ],
}
# The first kind of evaluator alone: needs nothing but a response.
LENGTH_PLAN: dict[str, Any] = {"criteria": PLAN["criteria"][:1], "evaluators": PLAN["evaluators"][:1]}


def judged_plan(url: str, calls_per_minute: int) -> dict[str, Any]:
    """A plan whose judge is a model, so many times a minute."""
    models = {"provider": "local", "apiKey": "${JUDGE_KEY}", "baseUrl": url}
    limits = {"requestsPerMinute": calls_per_minute, "timeoutSeconds": 120, "totalTimeoutSeconds": 600}
    return {
        "llmSettings": {**models, **limits, "models": {"evaluation": "judge"}},
        "criteria": [{"name": "tone", "scale": "likert5"}],
        "evaluators": [{"type": "criteria-judge"}],
    }


def rows(count: int) -> list[dict[str, Any]]:
    return [{"id": f"r{n}", "response": f"answer {n}", "groundTruth": "answer 1"} for n in range(count)]


@dataclass(frozen=True)
class Folder:
    """A folder with a plan, a dataset and results."""

    path: Path

    def plan(self, plan: Any = PLAN, name: str = "plan.json") -> Path:
        (self.path / name).write_text(plan if isinstance(plan, str) else json.dumps(plan))
        return self.path / name

    def dataset(self, content: bytes | str | Iterable[dict[str, Any]], name: str = "records.jsonl") -> Path:
        if isinstance(content, str):
            content = content.encode()
        elif not isinstance(content, bytes):
            content = b"".join(json.dumps(row).encode() + b"\n" for row in content)
        (self.path / name).write_bytes(content)
        return self.path / name

    @property
    def output(self) -> Path:
        return self.path / "results.jsonl"

    def results(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.read_text().splitlines()]

    def job(
        self, dataset: Path | str = "records.jsonl", plan: str = "plan.json", **settings: Any
    ) -> ScoringJob:
        return ScoringJob(self.path / dataset, self.path / plan, self.output, **settings)

    def score(self, dataset: Path | str = "records.jsonl", **settings: Any) -> DatasetSummary:
        return self.score_with(self.job(dataset, **settings))[0]

    def score_with(self, job: ScoringJob) -> tuple[DatasetSummary, ScoringPlan]:
        return score_dataset(job)


SCORE = ("score", "records.jsonl", "--plan", "plan.json", "-o", "results.jsonl")
"""The command for what a `Folder` holds, started in it."""


@dataclass(frozen=True)
class CommandResult:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str


def command(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> CommandResult:
    """Run the real entry point in this process."""
    capsys.readouterr()
    code = 0
    with patch.object(sys, "argv", ["evalstudio", *map(str, arguments)]):
        try:
            main()
        except SystemExit as done:
            code = done.code if isinstance(done.code, int) else int(done.code is not None)
    printed = capsys.readouterr()
    return CommandResult(code, printed.out, printed.err)
