"""Before the first call: cases chosen and filled in, and everything that is wrong told with its place."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conversation.talking import echo
from tests.conversation.talking import scenario as make

from evalstudio.base.problems import InvalidInput
from evalstudio.conversation.definitions import Scenario
from evalstudio.conversation.library import run_scenario
from evalstudio.conversation.preparation import prepare
from evalstudio.plugins import create_registry


class TestCases:
    def scenario(self) -> Scenario:
        return Scenario.model_validate(
            {
                "name": "s",
                "instructions": "ask about {{city}}",
                "script": ["Weather in {{city}}?"],
                "evaluators": [
                    {"type": "keyword-coverage", "config": {"keywordsSourceField": "groundTruth"}}
                ],
                "cases": [
                    {"name": "paris", "vars": {"city": "Paris {{x}}"}, "groundTruth": ["Paris"]},
                    {"name": "rome", "vars": {"city": "Rome"}, "groundTruth": ["Oslo"]},
                ],
            }
        )

    async def test_placeholders_are_filled_in_one_pass(self) -> None:
        result = await run_scenario(self.scenario(), echo, case="paris")
        assert result.messages[0].text == "Weather in Paris {{x}}?"
        assert result.passed

    async def test_each_case_has_its_own_ground_truth(self) -> None:
        assert (await run_scenario(self.scenario(), echo, case="rome")).outcome == "fail"

    async def test_several_cases_need_a_choice(self) -> None:
        with pytest.raises(InvalidInput, match="case="):
            await run_scenario(self.scenario(), echo)
        with pytest.raises(InvalidInput, match='no case is called "oslo"; there are: paris, rome'):
            await run_scenario(self.scenario(), echo, case="oslo")

    async def test_a_placeholder_without_a_value_is_refused(self) -> None:
        with pytest.raises(InvalidInput, match=r"\{\{city\}\} has no value"):
            await run_scenario(self.scenario(), echo, case={"vars": {"town": "Paris"}})


class TestValidation:
    @pytest.mark.parametrize(
        ("evaluator", "complaint"),
        [
            (
                {"type": "regx", "config": {}},
                r'evaluators\[0\].type: no evaluator is called "regx"; did you mean regex',
            ),
            ({"type": "regex", "config": {"pattern": "[["}}, r"evaluators\[0\].config: bad pattern: missing"),
            ({"type": "latency-budget", "config": {"maxMs": "fast"}}, r"evaluators\[0\].config.maxMs: "),
            ({"type": "regex", "config": {"pattern": "x", "criterionName": "tone"}}, '"tone" is not among'),
        ],
    )
    def test_a_wrong_entry_is_named_with_its_path(self, evaluator: Any, complaint: str) -> None:
        scenario = make(name="s", script=["a"], evaluators=[evaluator])
        with pytest.raises(InvalidInput, match=complaint):
            prepare(scenario, create_registry())

    def test_a_judge_without_a_model_is_refused_up_front(self) -> None:
        scenario = make(name="s", script=["a"], success_criteria="done")
        with pytest.raises(InvalidInput, match='"criteria" needs a language model'):
            prepare(scenario, create_registry())
