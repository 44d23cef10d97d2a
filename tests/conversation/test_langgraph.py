"""Whole conversations with a graph on a real LangGraph server."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.conversation.talking import NEVER, regex, scenario
from tests.support.models import ScriptedLlm

from evalstudio.conversation.definitions import Persona
from evalstudio.conversation.library import run_scenario


def connector(url: str, **config: Any) -> dict[str, Any]:
    return {"type": "langgraph", "baseUrl": url, "config": {"assistantId": "agent", **config}}


COUNTING = [regex("Lisbon"), {"type": "tool-call-count"}, {"type": "token-usage"}]


async def test_several_turns_are_one_thread_and_nothing_comes_twice(langgraph_url: str) -> None:
    wanted = scenario(script=["Hi", "Where is booking 42?", "Thanks", "Bye"], evaluators=COUNTING)
    result = await run_scenario(wanted, connector(langgraph_url))
    assert result.passed, result.reason
    assert [[m.role for m in turn.messages] for turn in result.turns] == [
        ["assistant"], ["assistant", "tool", "assistant"], ["assistant"], ["assistant"],
    ]  # fmt: skip
    texts = [m.text for m in result.messages]
    assert texts[1] == "Hello! I have heard 1 of your messages."
    assert texts[-1] == "Hello! I have heard 4 of your messages."
    assert len(texts) == 10
    assert result.thread_id


async def test_tool_calls_and_tokens_are_in_the_metrics(langgraph_url: str) -> None:
    wanted = scenario(
        script=["Where is booking 42?", "And booking 7?"],
        evaluators=[
            *COUNTING,
            {
                "type": "tool-usage",
                "config": {"rules": [{"tool": "find_booking", "arguments": {"number": "7"}}]},
            },
        ],
    )
    result = await run_scenario(wanted, connector(langgraph_url))
    assert result.passed, result.reason
    assert result.metrics["tool-call-count"] == 2
    assert result.metrics["token-usage"] == 100
    assert result.output()["tokensUsage"] == {"input_tokens": 62, "output_tokens": 38, "total_tokens": 100}


async def test_seeds_go_out_once(langgraph_url: str) -> None:
    seeds = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
    wanted = scenario(messages=seeds, script=["Still there?", "Good"], evaluators=[regex("heard 3")])
    result = await run_scenario(wanted, connector(langgraph_url))
    assert result.passed, result.reason
    assert len(result.messages) == 6


async def test_runs_side_by_side_keep_to_their_own_threads(langgraph_url: str) -> None:
    async def run(number: int) -> Any:
        wanted = scenario(
            script=[f"Where is booking {number}?", "Thanks"],
            evaluators=[regex(f"Booking {number}: "), regex("heard 2 of")],
        )
        return await run_scenario(wanted, connector(langgraph_url))

    results = await asyncio.gather(*(run(number) for number in range(100, 112)))
    assert [r.outcome for r in results] == ["pass"] * 12, [r.reason for r in results]
    assert len({r.thread_id for r in results}) == 12


async def test_a_persona_talks_to_the_graph(langgraph_url: str) -> None:
    llm = ScriptedLlm(persona=[{"message": "Where is booking 5?"}, {"stop": True, "stop_reason": "found"}])
    result = await run_scenario(
        scenario(evaluators=[NEVER]), connector(langgraph_url), persona=Persona(name="Ada"), llm=llm
    )
    assert (result.outcome, result.ended_by) == ("pass", "user")
    assert llm.asked["persona"][1][-1].text == (
        "Let me look.\n\nI found it. Booking 5: Lisbon, two nights, confirmed."
    )


async def test_a_graph_that_fails_is_an_agent_fault(langgraph_url: str) -> None:
    result = await run_scenario(
        scenario(script=["Hi"], evaluators=[NEVER]), connector(langgraph_url, assistantId="broken")
    )
    assert (result.outcome, result.fault) == ("error", "agent")
    assert "the booking system is on fire" in result.reason
