"""The judge over the real protocol: right verdicts or judge errors, never wrong ones, whatever is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pydantic import ValidationError
from tests.conversation.talking import NEVER, asked_by, by_model, open_llm, says, scenario, verdict
from tests.support.model_server import ModelServer, Recorded, Reply
from tests.support.models import ScriptedLlm

from evalstudio.base.problems import InvalidInput
from evalstudio.conversation.definitions import Persona
from evalstudio.conversation.library import run_scenario
from evalstudio.conversation.results import RunResult
from evalstudio.evaluators.builtin.llm_judge import llm_judge
from evalstudio.evaluators.builtin.prompts import MARK
from evalstudio.evaluators.results import Finding
from evalstudio.messages import Message

BOOKED = "Your table is booked, reference BK-12345."
DONE = verdict(True, reasoning="It gave a reference.")


async def judged(
    replies: Any, *, agent: str = BOOKED, structured: str = "native", **fields: Any
) -> RunResult:
    """One turn, judged over HTTP."""
    wanted = {"successCriteria": "The table is booked", "script": ["Book a table"], **fields}
    async with ModelServer(replies) as server, open_llm(server, structured=structured) as llm:
        return await run_scenario(scenario(**wanted), says(agent), llm=llm)


def criteria(result: RunResult) -> Finding:
    return next(r for r in result.evaluator_results if r.name == "criteria")


class TestProtocols:
    @pytest.mark.parametrize("structured", ["native", "tool"])
    @pytest.mark.parametrize("met", [True, False])
    async def test_the_judge_decides(self, structured: str, met: bool) -> None:
        answer = verdict(met, evidence=["reference BK-12345"])
        reply = answer if structured == "native" else Reply(tool=answer)
        result = await judged(reply, structured=structured)
        assert result.outcome == ("pass" if met else "fail")
        assert result.reason == ("All evaluators passed" if met else "Because.")
        found = criteria(result)
        assert found.value == float(met)
        assert found.metadata["evidence"] == [{"quote": "reference BK-12345", "found": True}]
        assert result.output()["modelUsage"]["evaluation"]["total_tokens"] == 15

    @pytest.mark.parametrize("structured", ["native", "tool"])
    async def test_the_persona_speaks(self, structured: str) -> None:
        turns = [{"message": "For two, please.", "stop": False}, {"message": "", "stop": True}]
        replies = turns if structured == "native" else [Reply(tool=turn) for turn in turns]
        async with (
            ModelServer(by_model(user=replies)) as server,
            open_llm(server, structured=structured) as llm,
        ):
            result = await run_scenario(
                scenario(script=["Book a table"], evaluators=[NEVER]),
                says(BOOKED),
                persona=Persona(name="Ada"),
                llm=llm,
            )
        assert [m.text for m in result.messages if m.role == "user"] == ["Book a table", "For two, please."]
        assert (result.outcome, result.ended_by) == ("pass", "user")

    async def test_reasoning_is_asked_for_before_the_verdict(self) -> None:
        async with ModelServer(verdict(True, False)) as server, open_llm(server) as llm:
            both = scenario(script=["x"], successCriteria="booked", failureCriteria="rude")
            await run_scenario(both, says(BOOKED), llm=llm)
        shape = server.requests[0].body["response_format"]["json_schema"]["schema"]
        names = ["reasoning", "evidence", "success_met", "failure_met", "confidence"]
        assert list(shape["properties"]) == names
        assert shape["required"] == names

    async def test_one_call_answers_both_questions_and_only_what_is_asked(self) -> None:
        async with ModelServer(verdict(True)) as server, open_llm(server) as llm:
            await run_scenario(scenario(script=["x"], successCriteria="booked"), says(BOOKED), llm=llm)
        assert len(server.requests) == 1
        shape = server.requests[0].body["response_format"]["json_schema"]["schema"]
        assert "failure_met" not in shape["properties"]

    async def test_an_answer_to_what_nobody_asked_is_sent_back(self) -> None:
        result = await judged([verdict(True, True), verdict(True)])
        assert result.passed
        result = await judged(verdict(True, True))
        assert (result.outcome, result.fault) == ("error", "judge")
        assert "failure_met: Extra inputs are not permitted" in result.reason

    async def test_the_judge_may_have_its_own_model(self) -> None:
        judge = {"type": "llm-judge", "config": {"successCriteria": "booked", "model": "strict"}}
        async with ModelServer(verdict(True)) as server, open_llm(server) as llm:
            result = await run_scenario(scenario(script=["x"], evaluators=[judge]), says(BOOKED), llm=llm)
        assert result.passed
        assert server.requests[0].body["model"] == "strict"


class TestEvidence:
    @pytest.mark.parametrize(
        ("quote", "found"),
        [
            ("reference BK-12345", True),
            ("“Your  TABLE is booked”", True),
            ("Your table\n    | is booked", True),
            ("'booked, reference'", True),
            ("(calls tool book", False),
            ('{"people": 2}', True),
            ("Your table is cancelled", False),
            ("booked … BK-12345", False),
            ("", False),
            ("...", False),
            ("The table is booked", False),
        ],
    )
    async def test_quotes_that_nobody_said_are_flagged(self, quote: str, found: bool) -> None:
        def agent(messages: list[Message]) -> dict[str, Any]:
            call = {"id": "1", "function": {"name": "book", "arguments": '{"people": 2}'}}
            return {"role": "assistant", "content": BOOKED, "tool_calls": [call]}

        async with ModelServer(verdict(True, evidence=[quote])) as server, open_llm(server) as llm:
            wanted = scenario(script=["Book"], successCriteria="The table is booked")
            result = await run_scenario(wanted, agent, llm=llm)
        assert criteria(result).metadata["evidence"] == [{"quote": quote, "found": found}]


async def voted(*answers: Any, **config: Any) -> RunResult:
    """One turn with as many votes as there are answers."""
    left = list(answers)
    judge = {"type": "llm-judge", "config": {"votes": len(left), **config}, "name": "criteria"}
    llm = ScriptedLlm(judge=left)
    return await run_scenario(scenario(script=["x"], evaluators=[judge]), says(BOOKED), llm=llm)


class TestVotes:
    async def test_the_majority_decides_and_the_split_is_shown(self) -> None:
        answers = [verdict(False, reasoning="no"), verdict(True, reasoning="yes"), verdict(True)]
        result = await voted(*answers, successCriteria="booked")
        found = criteria(result)
        assert result.passed
        assert found.metadata["votes"] == {"of": 3, "successMet": 2, "failureMet": 0, "failed": 0}
        assert found.reason == "yes (2 of 3 votes)"
        assert result.output()["modelUsage"]["evaluation"]["total_tokens"] == 36

    async def test_over_http_each_vote_is_a_call_of_its_own(self) -> None:
        judge = {"type": "llm-judge", "config": {"votes": 3, "successCriteria": "booked"}}
        replies = [verdict(True), verdict(False), verdict(False)]
        async with ModelServer(replies) as server, open_llm(server) as llm:
            result = await run_scenario(scenario(script=["x"], evaluators=[judge]), says(BOOKED), llm=llm)
        assert result.outcome == "fail"
        assert result.reason == "Because. (2 of 3 votes)"
        assert len({MARK.findall(request.texts[-1])[0] for request in server.requests}) == 3

    async def test_a_tie_is_no_verdict(self) -> None:
        result = await voted(verdict(True), verdict(False), successCriteria="booked")
        assert (result.outcome, result.fault) == ("error", "judge")
        assert "split 1 to 1" in result.reason
        assert criteria(result).metadata["votes"] == {"of": 2, "successMet": 1, "failureMet": 0, "failed": 0}

    async def test_a_tie_about_failure_alone_is_no_verdict_either(self) -> None:
        result = await voted(verdict(failure=True), verdict(failure=False), failureCriteria="rude")
        assert (result.outcome, result.fault) == ("error", "judge")

    async def test_a_tie_about_what_only_explains_does_not_matter(self) -> None:
        votes = [verdict(True, True), verdict(True, False)]
        result = await voted(*votes, successCriteria="booked", failureCriteria="rude")
        assert result.passed

    async def test_a_failed_vote_is_outvoted(self) -> None:
        answers = [RuntimeError("gone"), verdict(True), verdict(True)]
        result = await voted(*answers, successCriteria="booked")
        assert result.passed
        assert criteria(result).metadata["votes"]["failed"] == 1
        assert criteria(result).reason == "Because. (2 of 3 votes; 1 failed)"

    async def test_a_malformed_vote_never_makes_a_majority(self) -> None:
        result = await voted(verdict(True), {"success_met": "yes"}, successCriteria="booked")
        assert (result.outcome, result.fault) == ("error", "judge")
        assert "1 of 2 votes failed and the others do not decide: reasoning: Field required" in result.reason

    async def test_votes_that_fail_leave_no_majority(self) -> None:
        answers = [RuntimeError("gone"), RuntimeError("gone"), verdict(True)]
        result = await voted(*answers, successCriteria="booked")
        assert (result.outcome, result.fault) == ("error", "judge")
        assert "2 of 3 votes failed and the others do not decide: gone" in result.reason


class TestCriteria:
    async def played(
        self, answers: Callable[[int], Any] | Sequence[Any], **fields: Any
    ) -> tuple[RunResult, int]:
        """Three scripted turns; how often the judge was asked comes with it."""
        left = answers if callable(answers) else list(answers)
        async with (
            ModelServer(by_model(judge=lambda request: self.next(left, server))) as server,
            open_llm(server) as llm,
        ):
            wanted = scenario(script=["one", "two", "three"], **fields)
            result = await run_scenario(wanted, says(BOOKED), llm=llm)
        return result, len(asked_by(server, "judge"))

    def next(self, left: Any, server: ModelServer) -> Any:
        return left(len(server.requests)) if callable(left) else left.pop(0)

    async def test_success_is_latched_and_the_script_played_out(self) -> None:
        result, asked = await self.played([verdict(False), verdict(True)], successCriteria="booked")
        assert (result.outcome, result.ended_by, len(result.turns), asked) == ("pass", "success", 3, 2)
        assert result.output()["evaluation"] == {
            "successMet": True, "failureMet": False, "confidence": 0.9, "reasoning": "Because.",
        }  # fmt: skip

    async def test_in_every_turn_a_met_failure_ends_it_at_once(self) -> None:
        answers = [verdict(False, False), verdict(False, True, "It was rude.")]
        result, asked = await self.played(
            answers, successCriteria="booked", failureCriteria="rude", failureCriteriaMode="every_turn"
        )
        assert (result.outcome, result.ended_by, len(result.turns), asked) == ("fail", "failure", 2, 2)
        assert result.reason == "It was rude."
        assert result.output()["evaluation"]["failureMet"] is True

    async def test_in_every_turn_failure_goes_before_success(self) -> None:
        result, _ = await self.played(
            [verdict(True, True)],
            successCriteria="booked",
            failureCriteria="rude",
            failureCriteriaMode="every_turn",
        )
        assert (result.outcome, len(result.turns)) == ("fail", 1)

    async def test_by_default_a_met_failure_does_not_end_it(self) -> None:
        answers = [verdict(False, True), verdict(False, True), verdict(True, True)]
        result, _ = await self.played(answers, successCriteria="booked", failureCriteria="rude")
        assert (result.outcome, len(result.turns)) == ("pass", 3)

    async def test_by_default_it_explains_a_conversation_without_success(self) -> None:
        result, _ = await self.played(
            lambda n: verdict(False, True, f"rude in turn {n}"),
            successCriteria="booked",
            failureCriteria="rude",
        )
        assert (result.outcome, len(result.turns), result.reason) == ("fail", 3, "rude in turn 3")
        assert result.output()["evaluation"] == {
            "successMet": False, "failureMet": True, "confidence": 0.9, "reasoning": "rude in turn 3",
        }  # fmt: skip

    async def test_failure_criteria_alone_are_asked_once_at_the_end(self) -> None:
        result, asked = await self.played([verdict(failure=False)], failureCriteria="rude")
        assert (result.outcome, asked, criteria(result).gate) == ("pass", 1, "finally")
        assert result.output()["evaluation"]["successMet"] is True
        result, asked = await self.played([verdict(failure=True)], failureCriteria="rude")
        assert (result.outcome, asked, len(result.turns)) == ("fail", 1, 3)
        assert result.output()["evaluation"]["successMet"] is False

    async def test_failure_criteria_alone_in_every_turn_must_hold_always(self) -> None:
        wanted = {"failureCriteria": "rude", "failureCriteriaMode": "every_turn"}
        result, asked = await self.played(lambda _: verdict(failure=False), **wanted)
        assert (result.outcome, asked, criteria(result).gate) == ("pass", 3, "always")
        result, asked = await self.played([verdict(failure=False), verdict(failure=True)], **wanted)
        assert (result.outcome, asked, result.ended_by) == ("fail", 2, "failure")

    async def test_criteria_and_evaluators_must_both_hold(self) -> None:
        wanted = {"successCriteria": "booked", "evaluators": [{"type": "regex", "config": {"pattern": "XX"}}]}
        result, _ = await self.played(lambda _: verdict(True), **wanted)
        assert result.outcome == "fail"
        assert [r.name for r in result.evaluator_results][:2] == ["criteria", "regex"]

    async def test_the_judge_is_not_asked_when_something_fast_has_failed(self) -> None:
        wanted = {
            "successCriteria": "booked",
            "evaluators": [{"type": "regex", "config": {"pattern": "booked", "mustMatch": False}}],
        }
        result, asked = await self.played([], **wanted)
        assert (result.outcome, asked) == ("fail", 0)

    @pytest.mark.parametrize("blank", ["", "  ", "\n"])
    def test_blank_criteria_are_refused(self, blank: str) -> None:
        with pytest.raises(InvalidInput, match="successCriteria: must not be blank"):
            llm_judge.use(successCriteria=blank, failureCriteria="rude")

    @pytest.mark.parametrize("blank", ["  ", "\n"])
    def test_blank_criteria_of_a_scenario_are_refused_and_emptied_ones_are_gone(self, blank: str) -> None:
        with pytest.raises(ValidationError, match="must not be blank"):
            scenario(script=["x"], successCriteria=blank, failureCriteria="rude")
        emptied = scenario(script=["x"], successCriteria="", failureCriteria="rude")
        assert emptied.success_criteria is None

    async def test_criteria_that_are_blank_for_a_case_are_refused(self) -> None:
        cases = [{"vars": {"goal": " "}}]
        with pytest.raises(InvalidInput, match="must not be blank"):
            await run_scenario(
                scenario(script=["x"], successCriteria="{{goal}}", cases=cases),
                says(BOOKED),
                llm=ScriptedLlm(judge=[]),
            )

    async def test_placeholders_in_criteria_are_filled_wherever_they_are_written(self) -> None:
        asked: list[str] = []

        def judge(request: Recorded) -> dict[str, Any]:
            asked.append(request.texts[-1])
            return verdict(True)

        written = {"type": "llm-judge", "config": {"successCriteria": "Mentions {{city}} twice"}}
        wanted = scenario(
            script=["x"],
            successCriteria="Mentions {{city}}",
            evaluators=[written],
            cases=[{"vars": {"city": "Oslo {{x}}"}}],
        )
        async with ModelServer(judge) as server, open_llm(server) as llm:
            assert (await run_scenario(wanted, says(BOOKED), llm=llm)).passed
        assert {text.split("Success criteria:\n")[1].split("\n")[0] for text in asked} == {
            "Mentions Oslo {{x}}",
            "Mentions Oslo {{x}} twice",
        }
