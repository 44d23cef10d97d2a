"""What one call of each built-in evaluator costs on a 500-character reply, as a Markdown table.

Run it with ``python -m benchmarks.evaluators``. Model-backed ones ask a local server that answers at once, so
that only what is spent around the model shows.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import orjson
from tests.support.model_server import Recorded, threaded_server

from evalstudio import EvaluationCriteria, create_registry
from evalstudio.evaluators.contract import Invocation, TurnFacts
from evalstudio.evaluators.definition import Entry, EvaluatorDefinition
from evalstudio.evaluators.running import run_entries
from evalstudio.llm.client import Llm
from evalstudio.llm.settings import LlmSettings
from evalstudio.messages import Message, TokensUsage

ROUNDS = 15
SECONDS_PER_ROUND = 0.05

TEXT = "Your table for two is booked for eight tonight. The reference is BK-12345, thanks for your call. "
PROSE = (TEXT * 6)[:500]
JSON_REPLY = json.dumps({"reference": "BK-12345", "note": ""})[:-2] + PROSE[: 500 - 37] + '"}'
GOLD = ("The table for two is booked for eight. Your reference is BK-12345, thank you for calling. " * 6)[
    :500
]
CRITERION = EvaluationCriteria(name="helpful", description="Helps the customer", scale="likert5")
TOOL_CALL = {"id": "1", "function": {"name": "book_table", "arguments": '{"guests": 2, "time": "20:00"}'}}

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "llm-judge": {"successCriteria": "The table is booked"},
    "regex": {"pattern": r"BK-\d{5}"},
    "json-schema": {"schema": {"type": "object", "required": ["reference"]}},
    "latency-budget": {"maxMs": 2000},
    "token-budget": {"maxTokens": 1000},
    "tool-call-budget": {"maxCalls": 3},
    "tool-usage": {"rules": [{"tool": "book_table", "required": True, "arguments": {"guests": 2}}]},
    "state-match": {"expected": {"booked": ["BK-12345"]}},
    "rule-based": {"rules": [{"type": "length", "max": 600}, {"type": "includes", "keywords": ["booked"]}]},
    "lexical-similarity": {},
    "keyword-coverage": {"expectedKeywords": ["table", "booked", "eight", "reference"]},
    "toxicity": {"toxicTerms": ["idiot", "stupid", "shut up", "loser"]},
    "secret-leak": {"patterns": True},
    "human": {"criterionName": "helpful", "score": 4},
}


def facts(llm: Llm, response: str) -> TurnFacts:
    """A fresh turn each time, so that nothing is remembered from the call before."""
    answer = Message.model_construct(role="assistant", content=response, tool_calls=CALLS)
    usage = TokensUsage(input_tokens=200, output_tokens=120, total_tokens=320)
    return TurnFacts(
        messages=[answer],
        last_invocation=Invocation(640.0, [answer], usage, first_token_ms=120.0),
        is_final=True,
        ground_truth=GOLD,
        criteria=[CRITERION],
        state={"booked": ["BK-12345"]},
        llm=llm,
        embedder=llm,
    )


CALLS = Message.model_validate({"role": "assistant", "tool_calls": [TOOL_CALL]}).tool_calls


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds of one call: of our processor, and until the answer is there."""

    busy: float
    until: float


async def measure_entry(entry: Entry, llm: Llm) -> Cost:
    response = JSON_REPLY if entry.definition.type == "json-schema" else PROSE

    async def call() -> None:
        results = await run_entries([entry], facts(llm, response))
        assert not any(result.error for result in results), results

    async def nothing() -> None:
        facts(llm, response)

    calls = await _calls_per_round(call)
    rounds = [(await _timed(call, calls), await _timed(nothing, calls)) for _ in range(ROUNDS)]
    # Others share the machine, so the best round is the true one.
    whole, empty = ([times[place] for times in rounds] for place in (0, 1))
    return Cost(
        max(0.0, min(cost.busy for cost in whole) - min(cost.busy for cost in empty)),
        max(0.0, min(cost.until for cost in whole) - min(cost.until for cost in empty)),
    )


async def _calls_per_round(work: Callable[[], Awaitable[None]]) -> int:
    await work()
    start = time.perf_counter()
    await work()
    return max(3, int(SECONDS_PER_ROUND / (time.perf_counter() - start)))


async def _timed(work: Callable[[], Awaitable[None]], calls: int) -> Cost:
    busy, until = time.process_time(), time.perf_counter()
    for _ in range(calls):
        await work()
    busy, until = time.process_time() - busy, time.perf_counter() - until
    return Cost(busy / calls * 1e6, until / calls * 1e6)


Measured = list[tuple[EvaluatorDefinition, Cost]]


async def measure(url: str) -> Measured:
    """Every built-in evaluator and its cost, the cheapest first."""
    settings = {"provider": "local", "baseUrl": url, "models": {"evaluation": "judge"}}
    registry = create_registry()
    found: Measured = []
    async with Llm(LlmSettings.model_validate(settings)) as llm:
        for item in registry.list_evaluator_types():
            definition = registry.get_evaluator(item["type"])
            assert definition is not None
            entry = definition.use(CONFIGS.get(item["type"], {}))
            found.append((definition, await measure_entry(entry, llm)))
    return sorted(found, key=lambda line: line[1].busy)


def table(found: Measured) -> str:
    beside = next(cost.busy for definition, cost in found if definition.type == "regex")
    rows = [
        f"| `{definition.type}` | {definition.cost} | {_rounded(cost.busy)} | {_ratio(cost.busy / beside)} "
        f"| {_rounded(cost.until)} |"
        for definition, cost in found
    ]
    head = ("| evaluator | cost | CPU, µs | beside `regex` | latency, µs |", "|---|---|--:|--:|--:|")
    return "\n".join([*head, *rows])


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if number < 100 else f"{round(number, -1 if number < 1000 else -2):,.0f}"


def _ratio(number: float) -> str:
    return f"{number:.1f} ×" if number < 10 else f"{number:,.0f} ×"


def _answers(request: Recorded) -> dict[str, Any]:
    """What the judge is asked for and nothing else: an answer with more in it is refused."""
    schema = orjson.dumps(request.body).decode()
    asked = {"score": 4, "success_met": True}
    return {"reasoning": "Clear and correct."} | {name: asked[name] for name in asked if name in schema}


def _serve(pipe: Connection) -> None:
    with threaded_server(_answers) as server:
        pipe.send(server.url)
        pipe.recv()


@contextmanager
def model_server() -> Generator[str]:
    """The address of a model server in a process of its own, so that its work is not counted as ours."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send("stop")
        process.join(10)


def main() -> None:
    with model_server() as url:
        print(table(asyncio.run(measure(url))))


if __name__ == "__main__":
    main()
