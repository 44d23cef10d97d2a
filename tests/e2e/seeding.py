"""Long conversations and large executions, written straight into a project's database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.e2e.site import in_own_loop
from tests.support.stored_runs import ending, new_run

from evalstudio.evaluators.results import Finding, Turn, Verdict
from evalstudio.execution.workspace import open_workspace
from evalstudio.messages import Message, TokensUsage
from evalstudio.project.entities import Execution
from evalstudio.storage.contract import FinishedRun, RunEnding

QUOTE = "your money is **already** on its way"
_GROUP = 500


def seed_large_execution(config: Path, number: int) -> str:
    """An execution of many finished runs; its id. Every tenth fails, every fiftieth errors."""
    return in_own_loop(_large(config, number))


async def _large(config: Path, number: int) -> str:
    execution = Execution(eval_name="Large", trigger="test")
    async with open_workspace(config) as workspace:
        for first in range(0, number, _GROUP):
            places = range(first, min(first + _GROUP, number))
            await workspace.store.record(execution, [_run(place) for place in places])
        await workspace.store.finish_recording(execution.id)
    return execution.id


def _run(place: int) -> FinishedRun:
    scenario = place // 50
    run = new_run(place % 5 + 1, scenario_id=f"s{scenario}", scenario_name=f"Scenario {scenario}")
    results = [_matched(1, 2).to_json(), _measured(1).to_json()]
    output = {"messageCount": 2, "evaluatorResults": results, "metrics": {"tool-call-count": 1.0}}
    return FinishedRun(run, [], ending(_outcome(place), output=output))


def _outcome(place: int) -> str:
    if place % 50 == 0:
        return "error"
    return "fail" if place % 10 == 0 else "pass"


def seed_long_run(config: Path, messages: int) -> str:
    """A run of many messages with markdown, tool calls, a judge with evidence and a failure; its id."""
    return in_own_loop(_long(config, messages))


async def _long(config: Path, messages: int) -> str:
    turns = messages // 4
    run = new_run(scenario_name="A long talk")
    said = [_turn(number, turns) for number in range(1, turns)]
    execution = Execution(eval_name="Long", trigger="test")
    async with open_workspace(config) as workspace:
        await workspace.store.record(execution, [FinishedRun(run, said, _ending(turns))])
        await workspace.store.finish_recording(execution.id)
    return run.id


def _ending(turns: int) -> RunEnding:
    results = [_judged(turns), _matched(turns, turns), _measured(turns)]
    output: dict[str, Any] = {
        "messageCount": turns * 2,
        "avgLatencyMs": 320.0,
        "totalLatencyMs": 320.0 * turns,
        "endedBy": "limit",
        "tokensUsage": {"input_tokens": 9000, "output_tokens": 2000, "total_tokens": 11000},
        "evaluation": {
            "successMet": False,
            "failureMet": False,
            "confidence": 0.8,
            "reasoning": "The agent promised the refund without ever looking it up.",
        },
        "evaluatorResults": [result.to_json() for result in results],
        "metrics": {"tool-call-count": float(turns)},
    }
    verdict = Verdict(outcome="fail", score=0.0, reason="no reference was given")
    last = _turn(turns, turns, [*results])
    return RunEnding(verdict, output, 320.0 * turns, last_turn=last)


def _turn(number: int, turns: int, results: list[Finding] | None = None) -> Turn:
    said = [
        Message(role="user", content=f"Question {number}: where is my refund for order A-{1000 + number}?"),
        Message.model_validate(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": f"call-{number}",
                        "type": "function",
                        "function": {"name": "find_order", "arguments": f'{{"order": "A-{1000 + number}"}}'},
                    }
                ],
            }
        ),
        Message(role="tool", tool_call_id=f"call-{number}", content='{"status": "refunded", "amount": 12.5}'),
        Message(role="assistant", content=_answer(number)),
    ]
    found = results if results is not None else [_matched(number, turns), _measured(number)]
    usage = TokensUsage(input_tokens=120, output_tokens=30, total_tokens=150)
    return Turn(
        number=number,
        user_message=said[0],
        messages=said[1:],
        results=found,
        latency_ms=200 + 40 * (number % 7),
        tokens_usage=usage,
    )


def _answer(number: int) -> str:
    return (
        f"## Order A-{1000 + number}\n\nGood news: {QUOTE}.\n\n- sent on *Monday*\n- takes `2` days\n\n"
        "| step | state |\n|---|---|\n| sent | yes |\n| received | not yet |\n\n"
        f'```json\n{{"order": {number}}}\n```\n\nSee [the policy](https://example.com/policy).'
    )


def _judged(turn: int) -> Finding:
    evidence = [{"quote": QUOTE, "found": True}, {"quote": "nobody ever said this", "found": False}]
    metadata = {"successMet": False, "failureMet": False, "confidence": 0.8, "evidence": evidence}
    return Finding(
        "llm-judge",
        "LLM Judge",
        "criteria",
        "assertion",
        "eventually",
        False,
        0.0,
        "The agent promised the refund without ever looking it up.",
        metadata=metadata,
        turn=turn,
        duration_ms=810.0,
    )


def _matched(turn: int, turns: int) -> Finding:
    failed = turn in (turns // 2, turns)
    return Finding(
        "regex",
        "Regex Match",
        "reference given",
        "assertion",
        "always",
        not failed,
        float(not failed),
        "no reference was given" if failed else "found",
        metadata={} if failed else {"match": f"A-{1000 + turn}"},
        turn=turn,
    )


def _measured(turn: int) -> Finding:
    return Finding(
        "tool-call-count",
        "Tool Call Count",
        "tool-call-count",
        "metric",
        "always",
        True,
        1.0,
        "1 call",
        turn=turn,
    )
