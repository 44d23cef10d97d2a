"""Scores recorded answers with rules and a judge, prints a table and appends to a JSON-lines file.

Run it with ``python examples/scoring/score_with_rules_and_judge.py [results.jsonl]``. With OPENAI_API_KEY set
the judge is a real model; without, it is a few lines of our own, so that nothing but Python is needed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from evalstudio import (
    AggregatedEvaluationResult,
    EvaluationCriteria,
    EvaluationRunConfig,
    EvaluationRunner,
    JsonFileStorageProvider,
    Message,
    TokensUsage,
)
from evalstudio.evaluators.contract import Answer, LanguageModel
from evalstudio.llm.client import Llm
from evalstudio.llm.settings import LlmSettings

RECORDS = Path(__file__).with_name("records.jsonl")
HINTS = ("label", "box", "30 days", "5 days", "email", "address")
Shape = TypeVar("Shape", bound=BaseModel)

CONFIG = EvaluationRunConfig(
    criteria=[
        EvaluationCriteria(name="complete", description="Says enough to act on"),
        EvaluationCriteria(name="polite", description="Never insults the customer", weight=2),
        EvaluationCriteria(
            name="helpful", description="The customer knows what to do next", scale="likert5", weight=3
        ),
    ],
    evaluator_configs=[
        {"type": "rule-based", "rules": [{"criterionName": "complete", "type": "length", "min": 20}]},
        {"type": "toxicity", "config": {"criterionName": "polite", "toxicTerms": ["idiot", "stupid"]}},
        {"type": "criteria-judge", "config": {"criterionName": "helpful"}},
    ],
    metadata={"suite": "support answers"},
    concurrency=8,
)


class ScriptedJudge:
    """Judges by hand-made rules, behind the interface a model has."""

    async def answer(
        self, messages: Sequence[Message], schema: type[Shape], *, model: str | None = None
    ) -> Answer[Shape]:
        # The response stands between two marked lines, so that nothing in it can pass for the task.
        response = messages[-1].text.partition("=== response")[2].partition("=== end of response")[0]
        steps = [step for step in HINTS if step in response]
        mark = {"reasoning": f"Names {', '.join(steps) or 'nothing'}.", "score": min(5, 1 + len(steps) * 2)}
        return Answer(schema.model_validate(mark), TokensUsage(input_tokens=len(response) // 4))


async def score(output: Path) -> list[AggregatedEvaluationResult]:
    """Score every record, one result per line in the output file."""
    async with AsyncExitStack() as stack:
        judge: LanguageModel = ScriptedJudge()
        if os.environ.get("OPENAI_API_KEY"):
            settings = LlmSettings.model_validate({"models": {"evaluation": "gpt-4o-mini"}})
            judge = await stack.enter_async_context(Llm(settings))
        runner = EvaluationRunner(CONFIG, llm=judge, storage=JsonFileStorageProvider(output))
        records = [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]
        return await asyncio.gather(*(runner.run(record) for record in records))


def show(results: Sequence[AggregatedEvaluationResult]) -> None:
    """One line per record: its scores from 0 to 1, and what the judge said."""
    names = [criterion.name for criterion in CONFIG.criteria]
    table = Table("record", *names, "overall", "outcome", "the judge says")
    for result in results:
        scores = [f"{result.criterion_scores[n]:.2f}" if n in result.criterion_scores else "-" for n in names]
        overall = "-" if result.overall_score is None else f"{result.overall_score:.2f}"
        said = next((one.reasoning or "" for one in result.results if one.criterion_name == "helpful"), "")
        table.add_row(result.input_snapshot.id, *scores, overall, result.outcome, said)
    Console().print(table)


def main() -> None:
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("results.jsonl")
    results = asyncio.run(score(output))
    show(results)
    print(f"{len(results)} results appended to {output}")


if __name__ == "__main__":
    main()
