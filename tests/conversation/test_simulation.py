"""The simulated user: what it is told, what it sees, when it leaves, and what it must not do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.conversation.talking import NEVER, asked_by, by_model, echo, open_llm, regex, scenario, verdict
from tests.support.agent_server import AgentServer
from tests.support.model_server import HANG, ModelServer
from tests.support.models import ScriptedLlm

from evalstudio.base.problems import InvalidInput
from evalstudio.conversation.definitions import Case, Persona, Scenario
from evalstudio.conversation.library import run_scenario
from evalstudio.conversation.loop import converse, finished
from evalstudio.conversation.preparation import Services, prepare
from evalstudio.conversation.simulation import flipped, user_prompt
from evalstudio.messages import Message
from evalstudio.plugins import create_registry

ADA = Persona(
    name="Ada",
    description="An impatient caller.",
    system_prompt="You write in lower case.",
    knows="Her member number is 1234.",
    wants="A table for two at eight.",
)
STOP = {"stop": True, "stop_reason": "I have my table."}


def said(*pairs: tuple[str, str]) -> list[Message]:
    return [Message(role=role, content=text) for role, text in pairs]


def seen(messages: list[Message]) -> list[tuple[str, str]]:
    return [(m.role, m.text) for m in flipped(messages)]


class TestThePrompt:
    def prompt(self, wanted: Scenario, persona: Persona | None = ADA) -> str:
        return user_prompt(prepare(wanted, create_registry(), persona=persona, has_model=True))

    def test_says_who_it_is_and_what_it_is_after(self) -> None:
        prompt = self.prompt(scenario(instructions="You call a restaurant.", evaluators=[NEVER]))
        for part in (
            "You are Ada. An impatient caller.",
            "You write in lower case.",
            "What you want: A table for two at eight.",
            "Her member number is 1234.",
            "The situation: You call a restaurant.",
        ):
            assert part in prompt

    def test_leaves_out_what_nobody_gave(self) -> None:
        prompt = self.prompt(scenario(evaluators=[NEVER]), Persona(name="Bo"))
        assert "You are Bo." in prompt
        assert "None" not in prompt
        assert "What you" not in prompt
        assert "situation" not in prompt

    def test_is_the_same_without_a_persona(self) -> None:
        prompt = self.prompt(scenario(instructions="Ask for a table.", evaluators=[NEVER]), None)
        assert "The situation: Ask for a table." in prompt
        assert "You are None" not in prompt

    def test_is_filled_from_the_case(self) -> None:
        wanted = scenario(instructions="Ask about {{city}}.", evaluators=[NEVER])
        plan = prepare(wanted, create_registry(), case=Case(vars={"city": "Oslo"}), has_model=True)
        assert "Ask about Oslo." in user_prompt(plan)


class TestFlipping:
    def test_its_own_words_are_its_own(self) -> None:
        talk = said(("user", "Hi"), ("assistant", "Hello"), ("user", "Two"), ("assistant", "When?"))
        roles = [role for role, _ in seen(talk)]
        assert roles == ["user", "assistant", "user", "assistant", "user"]
        assert seen(talk)[1:] == [
            ("assistant", "Hi"),
            ("user", "Hello"),
            ("assistant", "Two"),
            ("user", "When?"),
        ]

    def test_an_agent_that_greets_first_is_answered(self) -> None:
        assert seen(said(("assistant", "How can I help?"))) == [("user", "How can I help?")]

    def test_the_sides_alternate_whatever_was_said(self) -> None:
        talk = said(
            ("system", "You are an agent"), ("assistant", "One"), ("assistant", "Two"), ("tool", "data"),
            ("user", "A"), ("user", "B"), ("assistant", ""), ("developer", "x"),
        )  # fmt: skip
        assert seen(talk) == [
            ("user", "One\n\nTwo"), ("assistant", "A\n\nB"), ("user", "(The agent said nothing. Go on.)"),
        ]  # fmt: skip

    def test_it_begins_where_nothing_was_said(self) -> None:
        assert seen([]) == seen(said(("system", "x"))) == [
            ("user", "(You are connected to the agent. You speak first.)")
        ]  # fmt: skip

    def test_tool_traffic_is_hidden(self) -> None:
        call = {"id": "1", "function": {"name": "secret_tool", "arguments": "{}"}}
        talk = [
            Message(role="user", content="Hi"),
            Message.model_validate({"role": "assistant", "content": "Let me see", "tool_calls": [call]}),
            Message(role="tool", content="SECRET", tool_call_id="1"),
            Message(role="assistant", content="Done"),
        ]
        assert seen(talk)[1:] == [("assistant", "Hi"), ("user", "Let me see\n\nDone")]


async def play(
    wanted: Scenario, turns: list[Any] | Callable[[Any], Any], persona: Persona | None = ADA
) -> tuple[Any, ScriptedLlm]:
    llm = ScriptedLlm(persona=turns)
    return await run_scenario(wanted, echo, persona=persona, llm=llm), llm


def users(result: Any) -> list[str]:
    return [m.text for m in result.messages if m.role == "user"]


class TestWhoSpeaks:
    async def test_script_first_then_the_persona(self) -> None:
        result, llm = await play(
            scenario(script=["one", "two"], evaluators=[NEVER]), [{"message": "three"}, STOP]
        )
        assert users(result) == ["one", "two", "three"]
        assert len(llm.asked["persona"]) == 2

    async def test_seeds_script_and_persona(self) -> None:
        seeds = [{"role": "assistant", "content": "How can I help?"}]
        result, llm = await play(
            scenario(messages=seeds, script=["one"], evaluators=[NEVER]), [{"message": "two"}, STOP]
        )
        assert [m.role for m in result.messages] == ["assistant", "user", "assistant", "user", "assistant"]
        assert [(m.role, m.text) for m in llm.asked["persona"][0][1:]] == [
            ("user", "How can I help?"), ("assistant", "one"), ("user", "You said: one"),
        ]  # fmt: skip
        assert result.message_count == 4

    async def test_a_seed_of_the_user_is_answered_before_the_persona_speaks(self) -> None:
        seeds = [{"role": "user", "content": "Hello?"}]
        result, _ = await play(scenario(messages=seeds, evaluators=[NEVER]), [{"message": "more"}, STOP])
        assert users(result) == ["Hello?", "more"]
        assert result.turns[0].user_message is None

    async def test_the_persona_opens_where_there_is_no_script(self) -> None:
        result, llm = await play(scenario(evaluators=[NEVER]), [{"message": "hi there"}, STOP])
        assert users(result) == ["hi there"]
        assert [m.role for m in llm.asked["persona"][0]] == ["system", "user"]

    async def test_instructions_alone_are_enough_for_a_simulated_user(self) -> None:
        result, _ = await play(
            scenario(instructions="Ask for a table.", evaluators=[NEVER]),
            [{"message": "a table?"}, STOP],
            None,
        )
        assert users(result) == ["a table?"]

    async def test_a_script_without_a_persona_just_ends(self) -> None:
        result, llm = await play(scenario(script=["one"], evaluators=[NEVER]), [], None)
        assert (result.ended_by, llm.asked["persona"]) == ("script", [])

    async def test_a_persona_without_a_model_plays_its_script(self) -> None:
        result = await run_scenario(scenario(script=["one"], evaluators=[NEVER]), echo, persona=ADA)
        assert (users(result), result.ended_by) == (["one"], "script")
        with pytest.raises(InvalidInput, match="nobody can speak first"):
            await run_scenario(scenario(evaluators=[NEVER]), echo, persona=ADA)

    async def test_the_limit_holds_for_it_too(self) -> None:
        counter = iter(range(100))
        result, llm = await play(
            scenario(maxMessages=7, evaluators=[NEVER]), lambda _: {"message": f"message {next(counter)}"}
        )
        assert (result.ended_by, len(result.turns), result.message_count) == ("limit", 3, 6)
        assert len(llm.asked["persona"]) == 3


class TestStopping:
    async def test_it_leaves_when_it_has_what_it_wants(self) -> None:
        result, _ = await play(scenario(script=["one"], evaluators=[NEVER]), [STOP])
        assert (result.outcome, result.ended_by, result.stop_reason) == ("pass", "user", "I have my table.")
        assert result.output()["endedBy"] == "user"
        assert result.output()["stopReason"] == "I have my table."

    async def test_what_has_not_held_by_then_has_failed(self) -> None:
        result, _ = await play(scenario(script=["one"], evaluators=[regex("never said")]), [STOP])
        assert (result.outcome, result.ended_by) == ("fail", "user")

    async def test_a_goodbye_with_the_stop_is_not_sent(self) -> None:
        result, _ = await play(
            scenario(script=["one"], evaluators=[NEVER]), [{"message": "Thanks, bye!", "stop": True}]
        )
        assert users(result) == ["one"]
        assert "stopReason" not in result.output()

    async def test_leaving_without_a_word_is_its_fault(self) -> None:
        result, _ = await play(scenario(evaluators=[NEVER]), [STOP])
        assert (result.outcome, result.fault) == ("error", "simulator")
        assert result.reason == "Simulator error: the simulated user left before saying anything"

    async def test_it_is_not_asked_once_the_goal_is_judged_reached(self) -> None:
        result, llm = await play(scenario(script=["one"], evaluators=[regex("one")]), [])
        assert (result.outcome, result.ended_by, llm.asked["persona"]) == ("pass", "success", [])


class TestPatience:
    @pytest.mark.parametrize("bad", ["", "   ", "one", " ONE "])
    async def test_an_empty_or_repeated_message_is_asked_for_again(self, bad: str) -> None:
        result, llm = await play(
            scenario(script=["one"], evaluators=[NEVER]), [{"message": bad}, {"message": "two"}, STOP]
        )
        assert users(result) == ["one", "two"]
        again = llm.asked["persona"][1]
        assert [m.role for m in again[-2:]] == ["assistant", "user"]
        assert "You said nothing" in again[-1].text or "You repeated your last message" in again[-1].text

    async def test_what_it_said_earlier_may_be_said_again(self) -> None:
        turns = [{"message": "yes"}, {"message": "and?"}, {"message": "yes"}, STOP]
        result, _ = await play(scenario(evaluators=[NEVER]), turns)
        assert users(result) == ["yes", "and?", "yes"]

    async def test_three_times_is_enough(self) -> None:
        result, llm = await play(scenario(script=["one"], evaluators=[NEVER]), lambda _: {"message": "one"})
        assert (result.outcome, result.fault) == ("error", "simulator")
        assert result.reason.endswith("repeated its last message, 3 times in a row")
        assert len(llm.asked["persona"]) == 3
        assert [m.text for m in result.messages] == ["one", "You said: one"]

    async def test_a_failure_stays_a_failure_when_the_simulator_breaks(self) -> None:
        wanted = scenario(script=["bad"], evaluators=[regex("bad", mustMatch=False)], stopOnFailure=False)
        result, _ = await play(wanted, lambda _: RuntimeError("no credit"))
        assert (result.outcome, result.fault) == ("fail", None)
        assert result.error == "Simulator error: no credit"

    async def test_what_had_not_held_is_pending_when_the_simulator_breaks(self) -> None:
        result, _ = await play(scenario(script=["one"], evaluators=[regex("never")]), [RuntimeError("gone")])
        assert result.outcome == "error"
        assert [r.pending for r in result.evaluator_results if r.name == "regex"] == [True]


class TestOverHttp:
    async def test_persona_headers_reach_the_agent_over_the_connectors(self) -> None:
        persona = Persona(name="Ada", headers={"x-user": "ada", "Authorization": "Bearer hers"})
        headers = {"X-User": "nobody", "Authorization": "Bearer ours", "X-Team": "qa"}
        async with AgentServer() as agent:
            await run_scenario(
                scenario(script=["one", "two"], evaluators=[NEVER]),
                {"type": "http", "baseUrl": agent.url, "headers": headers},
                persona=persona,
            )
        for request in agent.requests:
            assert request.headers["x-user"] == "ada"
            assert request.headers["authorization"] == "Bearer hers"
            assert request.headers["x-team"] == "qa"
        assert len(agent.requests) == 2

    async def test_what_it_knows_and_wants_reaches_only_its_own_model(self) -> None:
        replies = by_model(user=[{"message": "hello", "stop": False}], judge=lambda _: verdict(True))
        async with AgentServer() as agent, ModelServer(replies) as models, open_llm(models) as llm:
            await run_scenario(
                scenario(instructions="Call.", successCriteria="It greets."),
                {"type": "http", "baseUrl": agent.url},
                persona=ADA,
                llm=llm,
            )
        for secret in ("1234", "table for two"):
            assert secret in str(asked_by(models, "user")[0].body)
            assert secret not in str(asked_by(models, "judge")[0].body)
            assert secret not in str(agent.requests)

    async def test_usage_is_counted_per_role(self) -> None:
        turns = [
            {"message": "b", "stop": False},
            {"message": "b", "stop": False},
            {"message": "c", "stop": False},
        ]
        replies = by_model(user=turns, judge=[verdict(False), verdict(False), verdict(True)])
        async with ModelServer(replies) as models, open_llm(models) as llm:
            result = await run_scenario(
                scenario(script=["a"], successCriteria="c is said"), echo, persona=ADA, llm=llm
            )
        assert users(result) == ["a", "b", "c"]
        each = {"input_tokens": 30, "output_tokens": 15, "total_tokens": 45}
        assert result.output()["modelUsage"] == {"evaluation": each, "persona": each}
        assert "tokensUsage" not in result.output()

    async def test_null_is_the_same_as_left_out(self) -> None:
        turns = [
            {"message": "b", "stop": None, "stop_reason": None},
            {"message": None, "stop": True, "stop_reason": None},
        ]
        async with ModelServer(by_model(user=turns)) as models, open_llm(models) as llm:
            wanted = scenario(script=["a"], evaluators=[NEVER])
            result = await run_scenario(wanted, echo, persona=ADA, llm=llm)
        assert (users(result), result.ended_by, len(models.requests)) == (["a", "b"], "user", 2)
        assert "stopReason" not in result.output()

    @pytest.mark.parametrize("reply", [500, "not JSON at all", {"message": 5}, {"stop": "no"}, HANG])
    async def test_a_broken_model_is_the_simulators_fault_and_never_the_agents(self, reply: Any) -> None:
        async with ModelServer(reply) as models, open_llm(models, timeoutSeconds=0.3) as llm:
            result = await run_scenario(
                scenario(script=["a"], evaluators=[NEVER]), echo, persona=ADA, llm=llm
            )
        assert (result.outcome, result.fault) == ("error", "simulator")
        assert result.reason.startswith("Simulator error: user (local)") or "127.0.0.1" in result.reason


async def test_the_loop_needs_no_session_to_be_driven() -> None:
    class AgentConnection:
        async def setup(self) -> None: ...

        async def invoke(self, messages: list[Message], new_messages: list[Message]) -> Any:
            from evalstudio.connectors.replies import AgentReply

            return AgentReply([Message(role="assistant", content="ok")], 1.0)

        async def state(self) -> None: ...

    llm: Any = ScriptedLlm(persona=[{"message": "hi"}, STOP])
    plan = prepare(scenario(evaluators=[NEVER]), create_registry(), persona=ADA, has_model=True)
    result = await finished(converse(plan, AgentConnection(), Services(llm)))
    assert (result.outcome, result.ended_by) == ("pass", "user")
