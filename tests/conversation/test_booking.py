"""A booking over four turns with an agent behind HTTP: everything holds, or the run says what did not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.conversation.talking import open_llm, scenario, verdict
from tests.support.agent_server import AgentServer, Answer, Recorded
from tests.support.model_server import ModelServer
from tests.support.model_server import Recorded as Asked

from evalstudio.connectors.contract import ConnectorContext, define_connector
from evalstudio.connectors.exchange import exchange
from evalstudio.conversation.library import run_scenario
from evalstudio.conversation.results import RunResult

SCRIPT = [
    "I need an appointment with Dr. Moss.",
    "Thursday would be good.",
    "Half past nine, then.",
    "Yes, please book it.",
]
REFERENCE = "BK-20417"
EVALUATORS: list[dict[str, Any]] = [
    {"type": "llm-judge", "config": {"successCriteria": "Agent successfully books appointment"}},
    {"type": "latency-budget", "config": {"maxMs": 3000}},
    {"type": "regex", "config": {"pattern": r"BK-\d{5}", "mustMatch": True}},
    {"type": "tool-call-count", "config": {}},
    {"type": "token-usage", "config": {"track": "total"}},
]
# Per turn: what the agent says, the tools it calls for it, and the tokens that takes.
TURNS: list[tuple[str, list[str], int]] = [
    ("Which day suits you?", ["find_doctor"], 100),
    ("On Thursday there is 9:30 and 11:00.", ["find_slots"], 150),
    ("Thursday at 9:30 with Dr. Moss. Shall I book it?", [], 90),
    (f"Booked. Your reference is {REFERENCE}.", ["book", "send_mail"], 210),
]


def messages_of(text: str, tools: list[str]) -> list[dict[str, Any]]:
    """What a turn adds: a tool call and its result for each tool, then the text."""
    added: list[dict[str, Any]] = []
    for place, tool in enumerate(tools):
        call = {"id": f"{tool}-{place}", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        added += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "ok", "tool_call_id": call["id"]},
        ]
    return [*added, {"role": "assistant", "content": text}]


def booking_agent(
    delays: Mapping[int, float] | None = None, says: Mapping[int, str] | None = None
) -> AgentServer:
    """The agent; by turn, it can be made slow or say something else."""

    def answer(request: Recorded) -> Answer:
        turn = sum(message["role"] == "user" for message in request.body["messages"])
        text, tools, tokens = TURNS[turn - 1]
        usage = {"input_tokens": tokens - 20, "output_tokens": 20, "total_tokens": tokens}
        messages = messages_of((says or {}).get(turn, text), tools)
        return Answer(
            json={"messages": messages, "usage": usage, "threadId": "t-1"}, delay=(delays or {}).get(turn, 0)
        )

    return AgentServer(answer)


def fair_judge(request: Asked) -> dict[str, Any]:
    """Success once the agent has called its booking tool and said so."""
    prompt = request.texts[-1]
    done = "(calls tool book with {})" in prompt and "Booked." in prompt
    return verdict(done, reasoning="It booked." if done else "Nothing is booked yet.")


async def book(
    agent: AgentServer, judge: Any = fair_judge, evaluators: list[dict[str, Any]] | None = None
) -> RunResult:
    wanted = scenario(name="Booking Flow", script=SCRIPT, evaluators=evaluators or EVALUATORS)
    async with agent, ModelServer(judge) as models, open_llm(models) as llm:
        return await run_scenario(wanted, {"type": "http", "baseUrl": agent.url}, llm=llm)


def with_config(kind: str, **config: Any) -> list[dict[str, Any]]:
    return [e | {"config": e["config"] | config} if e["type"] == kind else e for e in EVALUATORS]


class TestTheBookingFlow:
    async def test_passes_though_the_reference_comes_only_in_the_last_turn(self) -> None:
        result = await book(booking_agent())
        assert (result.outcome, result.reason, result.score) == ("pass", "All evaluators passed", 1.0)
        assert (len(result.turns), result.ended_by, result.message_count) == (4, "success", 8)
        assert not any(REFERENCE in m.text for turn in result.turns[:3] for m in turn.messages)
        pending = [{r.name for r in turn.results if r.pending} for turn in result.turns]
        assert pending == [{"llm-judge", "regex"}] * 3 + [set()]

    async def test_its_metrics_are_those_of_the_whole_conversation(self) -> None:
        result = await book(booking_agent(delays={2: 0.15}))
        assert result.metrics["tool-call-count"] == 4
        assert result.metrics["token-usage"] == 550
        assert result.metrics["latency"] >= 150
        output = result.output()
        assert output["tokensUsage"] == {"input_tokens": 470, "output_tokens": 80, "total_tokens": 550}
        assert output["totalLatencyMs"] == pytest.approx(output["avgLatencyMs"] * 4)
        assert output["totalLatencyMs"] >= result.metrics["latency"]
        assert output["messageCount"] == 8
        assert output["maxMessagesReached"] is False
        assert {r["type"] for r in output["evaluatorResults"]} == {e["type"] for e in EVALUATORS} | {
            "latency"
        }

    async def test_one_conversation_on_one_thread(self) -> None:
        agent = booking_agent()
        result = await book(agent)
        sent = [(len(r.body["messages"]), r.body["threadId"]) for r in agent.requests]
        assert sent == [(1, None), (5, "t-1"), (9, "t-1"), (11, "t-1")]
        assert result.thread_id == "t-1"
        assert agent.peers == 1


class TestEachAssertionBroken:
    async def test_the_judge_is_not_convinced(self) -> None:
        result = await book(booking_agent(), judge=verdict(False, reasoning="It only says so."))
        assert (result.outcome, result.reason, result.score) == ("fail", "It only says so.", 0.0)
        assert (len(result.turns), result.ended_by) == (4, "script")
        assert [r.name for r in result.evaluator_results if r.failed] == ["llm-judge"]

    async def test_one_turn_is_too_slow(self) -> None:
        result = await book(
            booking_agent(delays={2: 0.4}), evaluators=with_config("latency-budget", maxMs=300)
        )
        assert (result.outcome, result.ended_by, len(result.turns)) == ("fail", "failure", 2)
        assert "300 ms" in result.reason.replace(",", "")
        assert [r.name for r in result.turns[1].results if r.failed and not r.pending] == ["latency-budget"]

    async def test_the_reference_never_comes(self) -> None:
        result = await book(booking_agent(says={4: "Booked. The reference is BK-2041."}))
        assert (result.outcome, len(result.turns)) == ("fail", 4)
        assert r"BK-\d{5}" in result.reason
        assert [r.name for r in result.evaluator_results if r.failed] == ["regex"]

    async def test_a_reference_in_an_earlier_turn_counts(self) -> None:
        said = {1: f"You still have {REFERENCE}.", 4: "Booked."}
        result = await book(booking_agent(says=said))
        assert result.outcome == "pass"

    async def test_metrics_break_nothing(self) -> None:
        agent = AgentServer(Answer(json={"message": f"Booked. {REFERENCE} (calls tool book with {{}})"}))
        result = await book(agent)
        assert result.outcome == "pass"
        assert result.metrics["tool-call-count"] == 0
        assert "token-usage" not in result.metrics
        missing = next(r for r in result.evaluator_results if r.name == "token-usage")
        assert (missing.value, missing.metadata["missing"], missing.success) == (None, True, True)

    async def test_a_judge_that_is_out_of_order_is_an_error_and_no_failure(self) -> None:
        result = await book(booking_agent(), judge="I would say it went well.")
        assert (result.outcome, result.fault, result.score) == ("error", "judge", None)
        assert result.metrics["tool-call-count"] == 4

    async def test_a_failure_is_a_failure_even_if_the_judge_is_out_of_order(self) -> None:
        result = await book(booking_agent(says={4: "No."}), judge="It went well.")
        assert (result.outcome, result.fault) == ("fail", None)
        assert r"BK-\d{5}" in result.reason


@define_connector(type="clinic")
async def clinic(ctx: ConnectorContext[Any]) -> Any:
    """An agent over HTTP whose bookings can be looked up."""
    return await exchange(ctx, "chat", {"messages": ctx.messages})


@clinic.setup
async def clinic_setup(ctx: ConnectorContext[Any]) -> None:
    await exchange(ctx, "reset", {"run": ctx.run.id})


@clinic.state
async def clinic_state(ctx: ConnectorContext[Any]) -> Any:
    return await exchange(ctx, "bookings", method="GET")


class TestTheDatabaseKnows:
    async def visit(self, books: bool) -> tuple[RunResult, list[str]]:
        """The agent always says it booked; whether it did is another matter."""
        kept: list[dict[str, Any]] = [{"doctor": "old entry"}]

        def answer(request: Recorded) -> Answer:
            if request.path == "/reset":
                kept.clear()
                return Answer(json={})
            if request.path == "/bookings":
                return Answer(json={"bookings": kept})
            if books and "book it" in request.body["messages"][-1]["content"]:
                kept.append({"doctor": "Moss", "time": "Thursday 9:30", "reference": REFERENCE})
            return Answer(json={"role": "assistant", "content": f"Booked. Your reference is {REFERENCE}."})

        expected = {"expected": {"doctor": "Moss"}, "path": "bookings[0]"}
        wanted = scenario(
            script=SCRIPT,
            evaluators=[EVALUATORS[2], {"type": "state-match", "config": expected}],
        )
        async with AgentServer(answer) as agent:
            result = await run_scenario(wanted, {"type": clinic, "baseUrl": agent.url})
        return result, [request.path for request in agent.requests]

    async def test_a_booking_that_was_made_passes(self) -> None:
        result, paths = await self.visit(books=True)
        assert result.passed, result.reason
        assert paths == ["/reset", *["/chat"] * 4, "/bookings"]
        assert result.state == {
            "bookings": [{"doctor": "Moss", "time": "Thursday 9:30", "reference": REFERENCE}]
        }

    async def test_a_booking_that_was_only_claimed_fails(self) -> None:
        result, _ = await self.visit(books=False)
        assert result.outcome == "fail"
        assert "bookings" in result.reason
        assert [r.name for r in result.evaluator_results if r.failed] == ["state-match"]
