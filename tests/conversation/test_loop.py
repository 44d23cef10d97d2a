"""Whole conversations: who speaks, what counts, when it ends and what it comes to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.conversation.talking import echo, regex
from tests.conversation.talking import scenario as make
from tests.support.models import ScriptedLlm

from evalstudio.base.problems import InvalidInput
from evalstudio.connectors.contract import (
    ConnectorContext,
    ConnectorError,
    ConnectorResponse,
    define_connector,
)
from evalstudio.connectors.replies import AgentReply
from evalstudio.conversation.definitions import Persona
from evalstudio.conversation.library import run_scenario, run_scenario_sync
from evalstudio.conversation.loop import AgentAnswered, Finished, TurnEnded, UserSpoke, converse
from evalstudio.conversation.preparation import Services, prepare
from evalstudio.evaluators.contract import EvaluationResult, EvaluatorContext
from evalstudio.evaluators.definition import define_evaluator
from evalstudio.messages import Message
from evalstudio.plugins import create_registry


async def test_five_lines_to_a_first_result() -> None:
    scenario = make(name="Hello", script=["Hi there"], evaluators=[regex("(?i)hi there")])
    result = await run_scenario(scenario, echo)
    assert result.passed
    assert result.outcome == "pass"
    assert result.reason == "All evaluators passed"
    assert [m.role for m in result.messages] == ["user", "assistant"]
    assert "Hello: PASS" in str(result)
    assert "<table>" in result._repr_html_()  # pyright: ignore[reportPrivateUsage]


async def test_the_sync_twin_works_inside_a_running_loop() -> None:
    scenario = make(name="Hello", script=["Hi"], evaluators=[regex("Hi")])
    assert run_scenario_sync(scenario, echo).passed


def test_the_sync_twin_works_without_a_loop() -> None:
    result = run_scenario_sync({"name": "Hello", "script": ["Hi"], "evaluators": [regex("nope")]}, echo)
    assert result.outcome == "fail"
    with pytest.raises(AssertionError, match="Hello: fail"):
        result.assert_passed()


class TestTheEnd:
    async def test_every_scripted_turn_is_played_even_if_success_comes_early(self) -> None:
        scenario = make(name="s", script=["one", "two", "three"], evaluators=[regex("one")])
        result = await run_scenario(scenario, echo)
        assert (len(result.turns), result.ended_by, result.outcome) == (3, "success", "pass")

    async def test_a_script_that_runs_out_ends_it(self) -> None:
        never = regex("x{9}", mustMatch=False)
        result = await run_scenario(make(name="s", script=["a", "b"], evaluators=[never]), echo)
        assert (result.ended_by, result.outcome) == ("script", "pass")

    async def test_an_always_failure_ends_it_at_once(self) -> None:
        scenario = make(name="s", script=["a", "bad", "c"], evaluators=[regex("bad", mustMatch=False)])
        result = await run_scenario(scenario, echo)
        assert (len(result.turns), result.ended_by, result.outcome) == (2, "failure", "fail")

    async def test_unless_it_is_told_to_go_on(self) -> None:
        scenario = make(
            name="s",
            script=["a", "bad", "c"],
            evaluators=[regex("bad", mustMatch=False)],
            stop_on_failure=False,
        )
        result = await run_scenario(scenario, echo)
        assert (len(result.turns), result.outcome) == (3, "fail")

    async def test_the_limit_counts_user_messages_and_replies_but_no_seeds(self) -> None:
        seeds = [Message(role="user", content="before"), Message(role="assistant", content="yes?")]
        scenario = make(
            name="s", messages=seeds, script=["a", "b", "c"], max_messages=7, evaluators=[regex("zzz")]
        )
        result = await run_scenario(scenario, lambda messages: ["One moment.", "Done."])
        assert (len(result.turns), result.message_count, result.ended_by) == (2, 6, "limit")
        assert result.output()["maxMessagesReached"] is True
        assert result.outcome == "fail"

    async def test_is_final_is_known_when_the_end_is(self) -> None:
        seen: list[tuple[int, bool]] = []

        @define_evaluator()
        def watch(ctx: EvaluatorContext[Any]) -> bool:
            seen.append((ctx.turn, ctx.is_final))
            return True

        await run_scenario(make(name="s", script=["a", "b"], evaluators=[watch]), echo)
        assert seen == [(1, False), (2, True)]

    async def test_finally_evaluators_see_the_whole_conversation_once(self) -> None:
        seen: list[tuple[int, bool, int]] = []

        @define_evaluator(gate="finally")
        def at_the_end(ctx: EvaluatorContext[Any]) -> bool:
            seen.append((ctx.turn, ctx.is_final, len(ctx.messages)))
            return True

        await run_scenario(make(name="s", script=["a", "b"], evaluators=[at_the_end]), echo)
        assert seen == [(2, True, 4)]

    async def test_they_run_after_a_failure_too_and_cannot_rescue(self) -> None:
        @define_evaluator(gate="finally")
        def content(ctx: EvaluatorContext[Any]) -> EvaluationResult:
            return EvaluationResult.passed("fine")

        scenario = make(name="s", script=["bad"], evaluators=[regex("bad", mustMatch=False), content])
        result = await run_scenario(scenario, echo)
        assert result.outcome == "fail"
        assert [r.name for r in result.evaluator_results[:2]] == ["regex", "content"]


class TestSpeaking:
    async def test_the_agent_speaks_first_after_a_user_seed(self) -> None:
        seeds = [Message(role="user", content="Hello?")]
        result = await run_scenario(make(name="s", messages=seeds, evaluators=[regex("Hello")]), echo)
        assert len(result.turns) == 1
        assert result.turns[0].user_message is None
        assert result.message_count == 1

    async def test_a_seed_of_the_agents_waits_for_the_user(self) -> None:
        seeds = [Message(role="assistant", content="How can I help?")]
        scenario = make(name="s", messages=seeds, script=["book"], evaluators=[regex("book")])
        result = await run_scenario(scenario, echo)
        assert [m.role for m in result.messages] == ["assistant", "user", "assistant"]

    async def test_nobody_to_speak_is_a_validation_error(self) -> None:
        with pytest.raises(InvalidInput, match="nobody can speak first"):
            await run_scenario(make(name="s", evaluators=[regex("x")]), echo)

    async def test_no_room_for_a_turn_is_a_validation_error(self) -> None:
        with pytest.raises(InvalidInput, match="maxMessages"):
            await run_scenario(make(name="s", script=["a"], max_messages=1, evaluators=[regex("x")]), echo)
        seeds = [Message(role="user", content="x")]
        scenario = make(name="s", messages=seeds, max_messages=1, evaluators=[regex("x")])
        assert (await run_scenario(scenario, echo)).passed

    def test_a_scenario_nothing_judges_is_refused(self) -> None:
        with pytest.raises(ValueError, match="nothing judges this scenario"):
            make(name="s", script=["a"])

    async def test_only_new_messages_go_out(self) -> None:
        seen: list[tuple[int, int]] = []

        @define_connector()
        def agent(ctx: ConnectorContext[Any]) -> str:
            seen.append((len(ctx.messages), len(ctx.new_messages)))
            return "ok"

        scenario = make(
            name="s",
            messages=[Message(role="user", content="x"), Message(role="assistant", content="y")],
            script=["a", "b"],
            evaluators=[regex("zzz")],
        )
        await run_scenario(scenario, agent)
        assert seen == [(3, 3), (5, 1)]

    async def test_several_messages_in_one_answer_are_one_turn(self) -> None:
        @define_connector()
        def agent(ctx: ConnectorContext[Any]) -> ConnectorResponse:
            return ConnectorResponse(
                [
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [{"name": "look", "args": {}, "id": "1"}],
                    },
                    {"role": "tool", "content": "found", "tool_call_id": "1"},
                    {"role": "assistant", "content": "Here it is."},
                ],
                tokens_usage={"input_tokens": 5, "output_tokens": 3},
            )

        scenario = make(name="s", script=["a", "b"], evaluators=[regex("Here"), {"type": "tool-call-count"}])
        result = await run_scenario(scenario, agent)
        assert len(result.turns) == 2
        assert result.message_count == 4
        assert result.metrics["tool-call-count"] == 2
        assert result.metrics["token-usage"] == 16
        assert result.output()["tokensUsage"]["total_tokens"] == 16


class TestPersonas:
    async def test_the_persona_goes_on_where_the_script_ends(self) -> None:
        llm = ScriptedLlm(persona=[{"message": "And for two?"}, {"stop": True, "stop_reason": "done"}])
        scenario = make(name="s", script=["Book a table"], evaluators=[regex("zzz", mustMatch=False)])
        persona = Persona(name="Ada", wants="a table", knows="her code is 1234", headers={"X-User": "ada"})
        result = await run_scenario(scenario, echo, persona=persona, llm=llm)
        assert [m.text for m in result.messages if m.role == "user"] == ["Book a table", "And for two?"]
        assert (result.ended_by, result.outcome) == ("user", "pass")

    async def test_it_sees_its_own_words_as_its_own_and_no_tool_traffic(self) -> None:
        llm = ScriptedLlm(persona=[{"message": "thanks"}, {"stop": True}])

        @define_connector()
        def agent(ctx: ConnectorContext[Any]) -> ConnectorResponse:
            call: dict[str, Any] = {"role": "assistant", "tool_calls": [{"name": "secret_tool", "id": "1"}]}
            tool = {"role": "tool", "content": "SECRET RESULT", "tool_call_id": "1"}
            return ConnectorResponse([call, tool, {"role": "assistant", "content": "All booked."}])

        scenario = make(name="s", script=["Book"], evaluators=[regex("zzz", mustMatch=False)])
        await run_scenario(scenario, agent, persona=Persona(name="Ada", knows="code 1234"), llm=llm)
        first = llm.asked["persona"][0]
        assert [(m.role, m.text) for m in first[2:]] == [("assistant", "Book"), ("user", "All booked.")]
        assert "code 1234" in first[0].text
        assert not any("SECRET" in m.text or "secret_tool" in m.text for m in first)

    async def test_what_it_knows_and_wants_is_hidden_from_judge_and_agent(self) -> None:
        llm = ScriptedLlm(
            judge=lambda _: {"reasoning": "r", "success_met": True}, persona=[{"message": "hello"}]
        )
        seen: list[str] = []

        def agent(messages: list[Message]) -> str:
            seen.extend(m.text for m in messages)
            return "hi"

        scenario = make(name="s", instructions="ask for a table", success_criteria="greets")
        persona = Persona(name="Ada", knows="PIN-1234", wants="FREE-LUNCH")
        await run_scenario(scenario, agent, persona=persona, llm=llm)
        judged = "\n".join(m.text for messages in llm.asked["evaluation"] for m in messages)
        for secret in ("PIN-1234", "FREE-LUNCH"):
            assert secret not in judged
            assert secret not in "\n".join(seen)
            assert secret in llm.asked["persona"][0][0].text

    @pytest.mark.parametrize("reply", [{"message": ""}, {"message": "  "}, {"message": "Book"}])
    async def test_an_empty_or_repeated_message_is_asked_for_again_then_a_simulator_fault(
        self, reply: Any
    ) -> None:
        llm = ScriptedLlm(persona=lambda _: reply)
        scenario = make(name="s", script=["Book"], evaluators=[regex("zzz", mustMatch=False)])
        result = await run_scenario(scenario, echo, persona=Persona(name="Ada"), llm=llm)
        assert (result.outcome, result.fault) == ("error", "simulator")
        assert len(llm.asked["persona"]) == 3

    async def test_a_model_that_fails_is_the_simulators_fault(self) -> None:
        llm = ScriptedLlm(persona=[RuntimeError("no credit")])
        scenario = make(name="s", instructions="x", evaluators=[regex("x")])
        result = await run_scenario(scenario, echo, persona=Persona(name="Ada"), llm=llm)
        assert (result.outcome, result.fault) == ("error", "simulator")
        assert "no credit" in result.reason


class TestFaults:
    async def test_an_agent_that_breaks_is_an_agent_fault(self) -> None:
        def agent(messages: Sequence[Message]) -> str:
            if len(messages) > 2:
                raise ConnectionError("gone")
            return "hi"

        scenario = make(name="s", script=["a", "b"], evaluators=[regex("zzz", mustMatch=False)])
        result = await run_scenario(scenario, agent)
        assert (result.outcome, result.fault) == ("error", "agent")
        assert "gone" in result.reason
        assert len(result.turns) == 1
        assert len(result.messages) == 3

    async def test_a_failure_before_the_break_stays_a_failure(self) -> None:
        def agent(messages: Sequence[Message]) -> str:
            if len(messages) > 2:
                raise ConnectorError("gone")
            return "bad"

        scenario = make(
            name="s",
            script=["a", "b"],
            evaluators=[regex("bad", mustMatch=False)],
            stop_on_failure=False,
        )
        result = await run_scenario(scenario, agent)
        assert result.outcome == "fail"
        assert result.error is not None

    async def test_an_evaluator_that_breaks_is_an_evaluator_fault(self) -> None:
        @define_evaluator()
        def broken(ctx: EvaluatorContext[Any]) -> bool:
            raise RuntimeError("kaputt")

        result = await run_scenario(make(name="s", script=["a"], evaluators=[broken]), echo)
        assert (result.outcome, result.fault, result.score) == ("error", "evaluator", None)
        assert result.error is not None
        assert result.error.startswith(
            'Evaluator "broken": RuntimeError: kaputt (tests/conversation/test_loop.py:'
        )

    async def test_cancelling_leaves_nothing_running(self) -> None:
        started = asyncio.Event()
        ended = asyncio.Event()

        async def agent(messages: list[Message]) -> str:
            started.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()
            return "never"

        before = asyncio.all_tasks()
        scenario = make(name="s", script=["a"], evaluators=[regex("x")])
        run = asyncio.create_task(run_scenario(scenario, agent))
        await asyncio.wait_for(started.wait(), 5)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert ended.is_set()
        assert asyncio.all_tasks() == before

    async def test_whoever_stops_listening_ends_the_conversation(self) -> None:
        class AgentConnection:
            calls = 0

            async def setup(self) -> None: ...

            async def invoke(self, messages: list[Message], new_messages: list[Message]) -> Any:
                AgentConnection.calls += 1
                raise AssertionError

            async def state(self) -> None: ...

        scenario = make(name="s", script=["a"], evaluators=[regex("x")])
        events = converse(prepare(scenario, create_registry()), AgentConnection(), Services())
        assert isinstance(await anext(events), UserSpoke)
        await events.aclose()
        assert AgentConnection.calls == 0


async def test_events_come_in_order() -> None:
    class AgentConnection:
        async def setup(self) -> None: ...

        async def invoke(self, messages: list[Message], new_messages: list[Message]) -> Any:
            return AgentReply([Message(role="assistant", content="ok")], 1.0, thread_id="t1")

        async def state(self) -> dict[str, Any]:
            return {"booked": True}

    scenario = make(
        name="s",
        script=["a", "b"],
        evaluators=[{"type": "state-match", "config": {"expected": {"booked": True}}}],
    )
    events = [e async for e in converse(prepare(scenario, create_registry()), AgentConnection(), Services())]
    kinds = [type(event) for event in events]
    assert kinds == [UserSpoke, AgentAnswered, TurnEnded, UserSpoke, AgentAnswered, TurnEnded, Finished]
    assert isinstance(events[-1], Finished)
    assert events[-1].result.passed
    assert events[-1].result.thread_id == "t1"


async def test_the_agent_says_it_booked_but_its_database_knows_better() -> None:
    @define_connector()
    def liar(ctx: ConnectorContext[Any]) -> str:
        return "Done! Your table is booked, reference BK-12345."

    @liar.state
    def liar_state(ctx: ConnectorContext[Any]) -> dict[str, Any]:
        return {"bookings": []}

    expected = {"bookings": [{"people": 2}]}
    scenario = make(
        name="Booking",
        script=["Book a table for two"],
        evaluators=[regex(r"BK-\d{5}"), {"type": "state-match", "config": {"expected": expected}}],
    )
    result = await run_scenario(scenario, liar)
    assert result.outcome == "fail"
    assert "bookings" in result.reason


class TestWhoAsksForTheLastTurn:
    @staticmethod
    def asking(seen: list[bool], **settings: Any) -> Any:
        def asks(ctx: EvaluatorContext[Any]) -> bool:
            seen.append(ctx.is_final)
            return True

        return define_evaluator(**settings)(asks).use()

    @staticmethod
    def looking(seen: list[int]) -> Any:
        async def looks(ctx: EvaluatorContext[Any]) -> bool:
            seen.append(ctx.turn)
            return True

        return define_evaluator(cost="llm")(looks).use()

    async def test_they_are_asked_again_once_it_is_known_and_nobody_else_is(self) -> None:
        asked: list[bool] = []
        looked: list[int] = []
        llm = ScriptedLlm(persona=[{"message": "More", "stop": False}, {"message": "", "stop": True}])
        scenario = make(script=["Hi"], evaluators=[self.asking(asked), self.looking(looked)])
        result = await run_scenario(scenario, echo, persona=Persona(name="Ada"), llm=llm)
        assert (asked, looked) == ([False, False, True], [1, 2])
        assert (result.ended_by, [len(turn.results) for turn in result.turns]) == ("user", [4, 4])

    async def test_an_end_known_beforehand_is_told_at_once(self) -> None:
        asked: list[bool] = []
        await run_scenario(make(script=["Hi", "Ho"], evaluators=[self.asking(asked)]), echo)
        assert asked == [False, True]

    async def test_a_failure_ends_it_for_them_too(self) -> None:
        asked: list[bool] = []
        fails = regex("Hi", mustMatch=False)
        await run_scenario(make(script=["Hi", "Ho"], evaluators=[self.asking(asked), fails]), echo)
        assert asked == [False, True]

    async def test_a_conversation_that_broke_off_had_no_last_turn(self) -> None:
        asked: list[bool] = []

        def breaks(messages: list[Message]) -> str:
            if len(messages) > 1:
                raise ConnectorError("gone")
            return "Hello"

        await run_scenario(make(script=["Hi", "Ho"], evaluators=[self.asking(asked)]), breaks)
        assert asked == [False]
