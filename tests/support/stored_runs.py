"""Executions and runs for the storage tests."""

from __future__ import annotations

from typing import Any

from evalstudio.evaluators.results import Finding, Turn, Verdict
from evalstudio.messages import Message, TokensUsage
from evalstudio.project.entities import Execution
from evalstudio.storage.contract import ClaimedRun, NewRun, RunEnding, Snapshot
from evalstudio.storage.store import SqlStore

SCENARIO = Snapshot.of({"name": "Booking", "script": ["Book a table"]})
CONNECTOR = Snapshot.of({"name": "Agent", "type": "http", "baseUrl": "http://127.0.0.1:1"})
PERSONA = Snapshot.of({"name": "Ada"})


def new_run(number: int = 1, **more: Any) -> NewRun:
    fields: dict[str, Any] = {
        "scenario": SCENARIO,
        "connector": CONNECTOR,
        "persona": PERSONA,
        "scenario_id": "s1",
        "scenario_name": "Booking",
        "persona_id": "p1",
        "persona_name": "Ada",
        "connector_id": "c1",
        "connector_name": "Agent",
        "case": {"name": f"case {number}", "vars": {"city": "Zürich"}},
        "repetition": number,
    }
    return NewRun(**fields | more)


async def queued(store: SqlStore, number: int = 1, **more: Any) -> Execution:
    execution = Execution(eval_id="e1", eval_name="Nightly", trigger="test", labels={"branch": "main"})
    return await store.enqueue(execution, [new_run(place + 1, **more) for place in range(number)])


async def claimed(store: SqlStore, worker: str = "w1", limit: int = 1, lease: float = 60) -> list[ClaimedRun]:
    return await store.claim(worker, limit, lease)


def turn(number: int = 1, text: str = "Done.") -> Turn:
    said = [Message(role="user", content="Book a table"), Message(role="assistant", content=text)]
    result = Finding("regex", "Regex", "regex", "assertion", "eventually", True, 1.0, "found", turn=number)
    usage = TokensUsage(input_tokens=3, output_tokens=4, total_tokens=7)
    return Turn(
        number=number,
        user_message=said[0],
        messages=said[1:],
        results=[result],
        latency_ms=20.5,
        tokens_usage=usage,
    )


def ending(outcome: Any = "pass", **more: Any) -> RunEnding:
    verdict = Verdict(
        outcome=outcome,
        fault="agent" if outcome == "error" else None,
        score=None if outcome == "error" else float(outcome == "pass"),
        reason=f"it came to {outcome}",
    )
    fields: dict[str, Any] = {
        "output": {"messageCount": 2},
        "latency_ms": 20.5,
        "tokens_usage": TokensUsage(input_tokens=3, output_tokens=4, total_tokens=7),
        "thread_id": "thread-1",
    }
    return RunEnding(verdict, **fields | more)
