"""A dataset of pydantic-evals: its evaluators on records, and around a bare loop that talks to an agent."""

# It is installed in an environment of its own.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedBaseClass=false, reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import Any

import aiohttp
from polyleven import levenshtein
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains, EqualsExpected, Evaluator, EvaluatorContext

from .checks import TERM, matches, timed
from .work import AT_ONCE, QUESTIONS, TALKS


@dataclass
class Close(Evaluator):
    def evaluate(self, ctx: EvaluatorContext) -> float:
        longest = max(len(ctx.output), len(ctx.expected_output), 1)
        return 1 - levenshtein(ctx.output, ctx.expected_output) / longest


@dataclass
class Matches(Evaluator):
    def evaluate(self, ctx: EvaluatorContext) -> bool:
        return matches(ctx.output)


@dataclass
class Booked(Evaluator):
    def evaluate(self, ctx: EvaluatorContext) -> dict[str, Any]:
        calls = sum(len(message.get("tool_calls") or ()) for message in ctx.output)
        return {"booked": "BK-" in ctx.output[-1]["content"], "calls": calls}


def score(dataset: str, output: str) -> None:
    with open(dataset) as rows:
        read = [json.loads(line) for line in rows]
    cases = [Case(name=row["id"], inputs=row, expected_output=row["groundTruth"]) for row in read]
    checks = (EqualsExpected(), Close(), Contains(value=TERM, case_sensitive=False), Matches())

    async def recorded(row: dict[str, Any]) -> str:
        return row["response"]

    made = Dataset(name="records", cases=cases, evaluators=checks)
    report = made.evaluate_sync(recorded, progress=False)
    with open(output, "w") as file:
        for case in report.cases:
            found = {**case.assertions, **case.scores}
            scores = {name: float(one.value) for name, one in found.items()}
            file.write(json.dumps({"id": case.name, "scores": scores}) + "\n")


async def talk(url: str) -> None:
    async with aiohttp.ClientSession() as session:

        async def conversation(_: int) -> list[dict[str, Any]]:
            messages: list[dict[str, Any]] = []
            for question in QUESTIONS:
                messages.append({"role": "user", "content": question})
                async with session.post(url, json={"messages": messages}) as response:
                    messages += (await response.json())["messages"]
            return messages

        cases = [Case(name=str(number), inputs=number) for number in range(TALKS)]
        made = Dataset(name="talks", cases=cases, evaluators=(Booked(),))
        report = await made.evaluate(conversation, max_concurrency=AT_ONCE, progress=False)
    assert len(report.cases) == TALKS


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    timed((lambda: score(*given)) if what == "score" else lambda: asyncio.run(talk(*given)))
