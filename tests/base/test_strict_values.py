"""Numbers and truth values are taken as such, in our configs and in those of plugins."""

from __future__ import annotations

from typing import Annotated, Any

import numpy
import pytest
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from evalstudio import InvalidInput, Scenario, create_registry
from evalstudio.configs import ConfigShape
from evalstudio.conversation.definitions import Case
from evalstudio.conversation.preparation import prepare
from evalstudio.llm.settings import LlmSettings
from evalstudio.project.config import ProjectConfig
from evalstudio.project.entities import Eval
from evalstudio.scoring.config import EvaluationRunConfig
from evalstudio.scoring.plan import ScoringPlan
from evalstudio.server.shapes.runs import StartExecution


class Part(BaseModel):
    size: int = 1
    share: float | None = None


class Settings(BaseModel):
    """A plugin's config, as its author writes it."""

    part: Part = Part()
    sizes: list[int] = []
    shares: dict[str, float] = {}
    whole: bool = Field(False, alias="isWhole")
    wait: Annotated[int, BeforeValidator(lambda value: int(str(value).removesuffix("s")))] = 1


class Lax(BaseModel):
    model_config = ConfigDict(strict=False)
    size: int = 1


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"part": {"size": "3"}}, "part.size: expected a whole number; leave out the quotes"),
        ({"part": {"share": "0.5"}}, "part.share: expected a number; leave out the quotes"),
        ({"sizes": [1, True]}, "sizes[1]: expected a whole number"),
        ({"shares": {"a": " 1e3 "}}, "shares.a: expected a number"),
        ({"isWhole": "yes"}, "isWhole: expected true or false"),
        ({"isWhole": 1}, "isWhole: expected true or false"),
    ],
)
def test_a_plugins_config_does_not_take_text_for_numbers(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        ConfigShape(Settings).parse("mine", config)
    assert [str(one) for one in refusal.value.problems] == [f"mine: {problem}"]


def test_a_plugin_may_read_values_in_its_own_way() -> None:
    parsed = ConfigShape(Settings).parse("mine", {"wait": "30s", "part": {"size": 2.0, "share": 1}})
    assert (parsed.wait, parsed.part.size, parsed.part.share) == (30, 2, 1)
    assert ConfigShape(Lax).parse("mine", {"size": "3"}).size == 3


@pytest.mark.parametrize(
    ("model", "data", "place"),
    [
        (Scenario, {"name": "a", "script": ["a"], "maxMessages": "4"}, ("maxMessages",)),
        (Scenario, {"name": "a", "script": ["a"], "stopOnFailure": "no"}, ("stopOnFailure",)),
        (Scenario, {"name": "a", "criteria": [{"name": "b", "weight": "2"}]}, ("criteria", 0, "weight")),
        (
            Scenario,
            {"name": "a", "criteria": [{"name": "b", "range": [0, True]}]},
            ("criteria", 0, "range", 1),
        ),
        (Eval, {"name": "a", "repetitions": "3"}, ("repetitions",)),
        (ProjectConfig, {"retention": {"maxExecutions": "3"}}, ("retention", "maxExecutions")),
        (LlmSettings, {"provider": "openai", "maxRetries": "3"}, ("maxRetries",)),
        (ScoringPlan, {"evaluators": [], "failUnder": "0.5"}, ("failUnder",)),
        (EvaluationRunConfig, {"evaluatorConfigs": [], "concurrency": True}, ("concurrency",)),
        (StartExecution, {"lastFailed": "no"}, ("lastFailed",)),
    ],
)
def test_definitions_and_requests_do_not_take_text_for_numbers(
    model: type[BaseModel], data: dict[str, Any], place: tuple[Any, ...]
) -> None:
    with pytest.raises(ValidationError) as refusal:
        model.model_validate(data)
    kinds = {error["loc"]: error["type"] for error in refusal.value.errors()}
    assert kinds[place] in ("int_type", "float_type", "bool_type")


def test_a_connectors_limits_do_not_take_text_for_numbers() -> None:
    http = create_registry().get_connector("http")
    assert http is not None
    with pytest.raises(InvalidInput, match="timeoutSeconds: expected a number; leave out the quotes"):
        http.settings({"timeoutSeconds": "5"}, "http://localhost")


def test_numbers_of_numpy_and_whole_floats_are_numbers() -> None:
    for number in (numpy.int64(4), 4.0):
        scenario = Scenario.model_validate({"name": "a", "successCriteria": "b", "maxMessages": number})
        assert scenario.max_messages == 4


BUDGET = {"type": "latency-budget", "config": {"maxMs": "{{limit}}"}}
FORBIDDEN = {"type": "regex", "config": {"pattern": "{{word}}", "mustMatch": "{{must}}"}}


def test_a_cell_of_text_is_read_as_the_number_its_setting_takes() -> None:
    scenario = Scenario.model_validate({"name": "a", "script": ["a"], "evaluators": [BUDGET, FORBIDDEN]})
    case = Case(vars={"limit": "900", "word": "12", "must": "false"})
    budget, forbidden, *_ = prepare(scenario, create_registry(), case=case).entries
    assert budget.config.max_ms == 900
    assert (forbidden.config.pattern, forbidden.config.must_match, forbidden.gate) == ("12", False, "always")


@pytest.mark.parametrize("cell", ["soon", "", "[900]", "null", "NaN"])
def test_a_cell_that_is_no_number_is_refused(cell: str) -> None:
    scenario = Scenario.model_validate({"name": "a", "script": ["a"], "evaluators": [BUDGET]})
    with pytest.raises(InvalidInput, match=r"evaluators\[0\].config.maxMs: expected a number"):
        prepare(scenario, create_registry(), case=Case(vars={"limit": cell}))
