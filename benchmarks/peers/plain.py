"""The floor: what a careful engineer would write for each piece of work and nothing else."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import aiohttp
import orjson
from rapidfuzz.distance import Levenshtein

from .checks import contains, matches, timed
from .work import AT_ONCE, CALLS, JUDGE_AT_ONCE, PROMPT, QUESTIONS, TALKS


def score(dataset: str, output: str) -> None:
    with open(dataset, "rb") as rows, open(output, "wb") as file:
        for line in rows:
            row = orjson.loads(line)
            response, expected = row["response"], row["groundTruth"]
            scores = {
                "exact": float(response == expected),
                "close": Levenshtein.normalized_similarity(response, expected),
                "names it": float(contains(response)),
                "ready": float(matches(response)),
            }
            mean = sum(scores.values()) / 4
            file.write(orjson.dumps({"id": row["id"], "scores": scores, "mean": mean}) + b"\n")


async def judge(url: str) -> None:
    left = iter(range(CALLS))
    async with aiohttp.ClientSession() as session:

        async def worker() -> None:
            for _ in left:
                body = {"model": "judge", "messages": [{"role": "user", "content": PROMPT}]}
                async with session.post(f"{url}/chat/completions", json=body) as response:
                    answer = await response.json()
                assert json.loads(answer["choices"][0]["message"]["content"])["met"]

        await asyncio.gather(*(worker() for _ in range(JUDGE_AT_ONCE)))


async def talk(url: str) -> None:
    left = iter(range(TALKS))
    async with aiohttp.ClientSession() as session:

        async def worker() -> None:
            for _ in left:
                messages: list[dict[str, Any]] = []
                for question in QUESTIONS:
                    messages.append({"role": "user", "content": question})
                    async with session.post(url, json={"messages": messages}) as response:
                        messages += (await response.json())["messages"]
                assert "BK-" in messages[-1]["content"]

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    if what == "score":
        timed(lambda: score(*given))
    else:
        timed(lambda: asyncio.run({"judge": judge, "talk": talk}[what](*given)))
