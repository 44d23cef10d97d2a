"""Whole conversations on a cassette: the same again, without the agent or the models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.conversation.talking import by_model, open_llm, scenario, verdict
from tests.support.agent_server import AgentServer, says
from tests.support.model_server import ModelServer

from evalstudio.cassettes import Cassette
from evalstudio.conversation.definitions import Persona
from evalstudio.conversation.library import run_scenario
from evalstudio.conversation.results import RunResult

ADA = Persona(name="Ada", wants="a table", headers={"X-User": "ada"})
JUDGE = {"type": "llm-judge", "config": {"successCriteria": "The table is booked", "votes": 3}}
WANTED = {"name": "Booking", "script": ["Book a table"], "evaluators": [JUDGE]}


async def play(cassette: Cassette, agent: str, models: str, **changes: Any) -> RunResult:
    llm = {"provider": "local", "baseUrl": models, "models": {"evaluation": "judge", "persona": "user"}}
    return await run_scenario(
        scenario(**WANTED | changes),
        {"type": "http", "baseUrl": agent},
        persona=ADA,
        llm=llm,
        cassette=cassette,
    )


async def test_a_recorded_run_is_played_back_without_agent_or_models(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    split = [verdict(False), verdict(False), verdict(True), verdict(True), verdict(False), verdict(True)]
    replies = by_model(user=[{"message": "At eight", "stop": False}], judge=split)
    async with AgentServer([says("When?"), says("Booked.")]) as agent, ModelServer(replies) as models:
        with Cassette.record(tape) as cassette:
            first = await play(cassette, agent.url, models.url)
    assert (first.outcome, len(first.turns)) == ("pass", 2)
    with Cassette.replay(tape) as cassette:
        again = await play(cassette, agent.url, models.url)
    assert [m.to_json() for m in again.messages] == [m.to_json() for m in first.messages]
    assert [r.metadata.get("votes") for t in again.turns for r in t.results if r.type == "llm-judge"] == [
        {"of": 3, "successMet": 1, "failureMet": 0, "failed": 0},
        {"of": 3, "successMet": 2, "failureMet": 0, "failed": 0},
    ]
    assert (again.outcome, again.reason, again.score) == (first.outcome, first.reason, first.score)
    assert again.output()["modelUsage"] == first.output()["modelUsage"]


async def test_a_miss_is_an_error_of_nobody_in_the_conversation(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    with Cassette.record(tape) as cassette:
        async with AgentServer() as agent, ModelServer(verdict(True)) as models:
            await play(cassette, agent.url, models.url)
    with Cassette.replay(tape) as cassette:
        missed = await play(cassette, agent.url, models.url, script=["Book a chair"])
    assert (missed.outcome, missed.fault, missed.score) == ("error", "system", None)
    assert 'asked "Book a chair", recorded "Book a table"' in missed.reason
    assert len(cassette.misses) == 1


async def test_a_model_of_ones_own_is_asked_all_the_same(tmp_path: Path) -> None:
    async with AgentServer() as agent, ModelServer(verdict(True)) as models, open_llm(models) as llm:
        with Cassette.record(tmp_path / "tape.jsonl") as cassette:
            result = await run_scenario(
                scenario(script=["Hi"], successCriteria="It greets."),
                {"type": "http", "baseUrl": agent.url},
                llm=llm,
                cassette=cassette,
            )
    assert result.passed
    assert len((tmp_path / "tape.jsonl").read_text().splitlines()) == 1
