"""The scorers of autoevals, called one after the other; its judge with OpenAI's client."""

# It is installed in an environment of its own.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedBaseClass=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from typing import Any

from autoevals import ExactMatch, Levenshtein, LLMClassifier, Score, Scorer

from .checks import contains, matches, timed
from .work import CALLS, JUDGE_AT_ONCE, PROMPT


class Contains(Scorer):
    def _run_eval_sync(self, output: Any, expected: Any = None, **_: Any) -> Any:
        return Score(name="Contains", score=float(contains(output)))


class Matches(Scorer):
    def _run_eval_sync(self, output: Any, expected: Any = None, **_: Any) -> Any:
        return Score(name="Matches", score=float(matches(output)))


def score(dataset: str, output: str) -> None:
    scorers = [ExactMatch(), Levenshtein(), Contains(), Matches()]
    with open(dataset) as rows, open(output, "w") as file:
        for line in rows:
            row = json.loads(line)
            scores = [one(row["response"], row["groundTruth"]).as_dict() for one in scorers]
            mean = sum(one["score"] for one in scores) / len(scores)
            file.write(json.dumps({"id": row["id"], "scores": scores, "mean": mean}) + "\n")


async def judge(url: str) -> None:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="none")
    judging = LLMClassifier("met", PROMPT + " {{output}}", {"Y": 1, "N": 0}, model="judge", client=client)
    left = iter(range(CALLS))

    async def worker() -> None:
        for number in left:
            assert (await judging.eval_async(f"Answer {number}.", None)).score == 1

    await asyncio.gather(*(worker() for _ in range(JUDGE_AT_ONCE)))


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    if what == "judge":
        # The client's library is loaded before the work is timed.
        import_module("openai")
    timed((lambda: score(*given)) if what == "score" else lambda: asyncio.run(judge(*given)))
