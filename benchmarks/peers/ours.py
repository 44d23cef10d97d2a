"""EvalStudio: recorded responses by a plan, a judge, and an execution with everything stored."""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from .checks import TERM, timed
from .work import AT_ONCE, CALLS, JUDGE_AT_ONCE, PROMPT, QUESTIONS, TALKS

EXACT = {"algorithm": "levenshtein", "threshold": 1, "caseSensitive": True, "normalizeWhitespace": False}
CLOSE = {"algorithm": "levenshtein", "caseSensitive": True, "normalizeWhitespace": False}
PLAN = {
    "evaluators": [
        {"type": "lexical-similarity", "name": "exact", "config": EXACT},
        {"type": "lexical-similarity", "name": "close", "config": CLOSE},
        {
            "type": "rule-based",
            "name": "names it",
            "config": {"rules": [{"type": "includes", "keywords": [TERM]}]},
        },
        {"type": "regex", "name": "ready", "config": {"pattern": r"\bready\b"}},
    ]
}
DEFINITIONS: dict[str, Any] = {
    "scenarios": [
        {
            "name": "Booking",
            "script": QUESTIONS,
            "evaluators": [{"type": "regex", "config": {"pattern": r"BK-\d+"}}, {"type": "tool-call-count"}],
        }
    ],
    "evals": [{"name": "all", "scenarios": ["Booking"], "connectors": ["agent"], "repetitions": TALKS}],
}


def score(dataset: str, output: str) -> None:
    from evalstudio.scoring.job import ScoringJob, score_dataset

    plan = Path(output).with_suffix(".plan.json")
    plan.write_text(json.dumps(PLAN))
    score_dataset(ScoringJob(Path(dataset), plan, Path(output)))


async def judge(url: str) -> None:
    from pydantic import BaseModel

    from evalstudio.llm import Llm, LlmSettings
    from evalstudio.messages import Message

    class Verdict(BaseModel):
        reasoning: str
        met: bool

    left = iter(range(CALLS))
    settings = {"provider": "local", "baseUrl": url, "models": {"evaluation": "judge"}}
    async with Llm(LlmSettings.model_validate(settings)) as llm:

        async def worker() -> None:
            for number in left:
                asked = [Message(role="user", content=f"{PROMPT} Answer {number}.")]
                assert (await llm.answer(asked, Verdict)).value.met

        await asyncio.gather(*(worker() for _ in range(JUDGE_AT_ONCE)))


def project(url: str, folder: Path) -> None:
    folder.mkdir()
    agent = {"name": "agent", "type": "http", "baseUrl": url, "config": {"responsePath": "messages"}}
    (folder / "evalstudio.config.json").write_text(json.dumps({"name": "bench"}))
    (folder / "evals.json").write_text(json.dumps({"connectors": [agent], **DEFINITIONS}))


async def talk(folder: Path) -> None:
    from evalstudio.execution.definitions import apply_files
    from evalstudio.execution.processor import work_off
    from evalstudio.execution.request import request_for, start_execution
    from evalstudio.execution.workspace import open_workspace
    from evalstudio.project.entities import StoredEval

    async with open_workspace(folder / "evalstudio.config.json") as workspace:
        await apply_files(workspace, [folder / "evals.json"])
        stored = await workspace.store.find("eval", "all")
        assert isinstance(stored, StoredEval)
        execution = await start_execution(workspace, await request_for(workspace, stored))
        done = await work_off(workspace, execution, stop=asyncio.Event(), concurrency=AT_ONCE)
        assert done.counts.passed == TALKS


# Imported before the work is timed, as those of the others are.
MODULES = {
    "score": [
        "rapidfuzz.distance",
        "evalstudio.scoring.job",
        *(f"evalstudio.evaluators.builtin.{name}" for name in ("lexical_similarity", "rule_based", "regex")),
    ],
    "judge": ["evalstudio.llm"],
    "talk": ["evalstudio.cli.project", "evalstudio.execution.workspace", "evalstudio.execution.processor"],
}


def run(what: str, given: list[str]) -> None:
    if what == "score":
        score(*given)
    elif what == "judge":
        asyncio.run(judge(*given))
    else:
        from evalstudio.cli.project import run_async

        url, place = given
        project(url, Path(place))
        run_async(talk(Path(place)))


if __name__ == "__main__":
    for module in MODULES[sys.argv[1]]:
        import_module(module)
    timed(lambda: run(sys.argv[1], sys.argv[2:]))
