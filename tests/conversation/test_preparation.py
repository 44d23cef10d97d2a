"""Before the first call: cases chosen and filled in, and everything that is wrong told with its place."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conversation.talking import echo
from tests.conversation.talking import scenario as make

from evalstudio import ConnectorContext, define_connector
from evalstudio.base.problems import InvalidInput
from evalstudio.conversation.definitions import Case, Scenario
from evalstudio.conversation.library import run_scenario
from evalstudio.conversation.preparation import PreparedScenario, prepare
from evalstudio.evaluators.builtin.regex import regex
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


class TestValuesOfTheCase:
    def prepared(self, *evaluators: Any, **more: Any) -> PreparedScenario:
        fields = {"name": "s", "script": ["Hello"], "evaluators": list(evaluators), **more}
        case = Case(name="first", vars={"word": "tea", "most": 300, "items": [{"id": 7}], "odd": "{{word}}"})
        return prepare(make(**fields), create_registry(), case=case, has_model=True)

    def test_configs_are_filled_as_deep_as_they_go_and_values_keep_their_types(self) -> None:
        expected = {"cart": {"items": "{{items}}", "note": "a {{word}}"}}
        prepared = self.prepared(
            {"type": "latency-budget", "config": {"maxMs": "{{most}}"}},
            {"type": "state-match", "config": {"expected": expected}},
            {"type": "keyword-coverage", "config": {"expectedKeywords": ["{{word}}", "{{odd}}"]}},
            regex.use(pattern="^{{word}}$", gate="always"),
        )
        budget, state, keywords, pattern = prepared.entries[:4]
        assert budget.config.max_ms == 300
        assert state.config.expected == {"cart": {"items": [{"id": 7}], "note": "a tea"}}
        assert keywords.config.expected_keywords == ["tea", "{{word}}"]
        assert (pattern.config.pattern, pattern.gate) == ("^tea$", "always")

    def test_references_context_and_criteria_are_filled(self) -> None:
        criterion = {"name": "right", "description": "Offers {{word}}", "scale": "binary"}
        prepared = self.prepared(
            ground_truth={"drink": "{{word}}"}, context={"max": "{{most}}"}, criteria=[criterion]
        )
        assert prepared.ground_truth == {"drink": "tea"}
        assert prepared.context == {"max": 300}
        assert prepared.criteria[0].description == "Offers tea"

    def test_a_prompt_with_names_of_its_own_gets_the_values_of_the_case_too(self) -> None:
        criterion = {"name": "right", "description": "Is right", "scale": "binary"}
        template = "Is {{response}} about {{word}}, {{odd}}, {{context.a}} or \\{{this}}?"
        judge = {"type": "criteria-judge", "config": {"promptTemplate": template}}
        prepared = self.prepared(judge, criteria=[criterion])
        shown = "Is {{response}} about tea, \\{{word}}, {{context.a}} or \\{{this}}?"
        assert prepared.entries[0].config.prompt_template == shown

    def test_a_value_that_breaks_a_config_is_told_with_its_case(self) -> None:
        with pytest.raises(InvalidInput) as caught:
            self.prepared({"type": "latency-budget", "config": {"maxMs": "{{word}}"}})
        assert str(caught.value).startswith('case "first": evaluators[0].config.maxMs: expected a number')

    async def test_setup_and_state_hooks_know_the_values(self) -> None:
        prepared_with: list[Any] = []

        @define_connector(type="shop")
        def shop(ctx: ConnectorContext[Any]) -> str:
            return f"Here is your {ctx.run.case_values['word']}"

        @shop.setup
        def stock(ctx: ConnectorContext[Any]) -> None:
            prepared_with.append(ctx.run.case_values)

        @shop.state
        def sold(ctx: ConnectorContext[Any]) -> dict[str, Any]:
            return {"sold": ctx.run.case_values["word"]}

        fields = {"name": "s", "script": ["One {{word}}"], "cases": [{"vars": {"word": "tea"}}]}
        evaluator = {"type": "state-match", "config": {"expected": {"sold": "{{word}}"}}}
        result = await run_scenario({**fields, "evaluators": [evaluator]}, shop)
        assert (result.outcome, prepared_with) == ("pass", [{"word": "tea"}])


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
