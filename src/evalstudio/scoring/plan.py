"""Scoring plans: criteria, evaluators, field mapping and thresholds in a YAML or JSON file.

A plan may extend others: criteria and evaluators of the same name are replaced, new ones added.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, ConfigDict, Field, ValidationError, field_validator

from ..configs import StrictConfig
from ..evaluators.criteria import EvaluationCriteria, Name, check_unique
from ..evaluators.records import EvaluationInput
from ..files import ConfigError
from ..llm.settings import LlmSettings
from ..schemas import path_text
from .config import EvaluationRunConfig, Names
from .extending import EVALUATORS, read_extended

_TARGETS = [field.alias or name for name, field in EvaluationInput.model_fields.items() if name != "criteria"]


def _both_spellings(schema: dict[str, Any]) -> None:
    """Editors are told of the older name too, and of the line that leads them here."""
    first, older = EVALUATORS
    schema["properties"] |= {older: schema["properties"][first], "$schema": {"type": "string"}}


Share = Annotated[float, Field(ge=0, le=1)]


class PlannedEvaluator(StrictConfig):
    """One evaluator of a plan."""

    model_config = ConfigDict(extra="allow")

    type: Name = Field(description="A built-in type or a plugin's")
    name: str | None = Field(
        None, description="Its name in results; names the criterion it scores, if there is one"
    )
    config: dict[str, Any] = Field(default_factory=dict[str, Any], description="Settings of this type")


class ScoringPlan(StrictConfig):
    """How to score a dataset."""

    model_config = ConfigDict(json_schema_extra=_both_spellings)

    extends: Names = Field(default_factory=list[str], description="Plans to build on, relative to this file")
    criteria: list[EvaluationCriteria] = Field(default_factory=list[EvaluationCriteria])
    evaluators: list[PlannedEvaluator] = Field(
        default_factory=list[PlannedEvaluator],
        validation_alias=AliasChoices(*EVALUATORS),
    )
    fields: dict[str, str] = Field(
        default_factory=dict[str, str], description="Where each field of a record is found in a row"
    )
    thresholds: dict[str, Share] = Field(
        default_factory=dict[str, Share], description="Lowest acceptable mean per criterion, 0–1"
    )
    fail_under: Share | None = Field(None, description="Lowest acceptable overall score, 0–1")
    only: Names = Field(default_factory=list[str], description="Run only these types, kinds or costs")
    skip: Names = Field(default_factory=list[str], description="Leave out these types, kinds or costs")
    concurrency: int = Field(8, ge=1, description="Records waiting for a model at once")
    llm_settings: LlmSettings | None = Field(
        None, description="The model provider, for evaluators that need one"
    )
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    plugins: list[str] = Field(default_factory=list[str], description="Plugins, relative to this file")

    @field_validator("criteria")
    @classmethod
    def _unique(cls, value: list[EvaluationCriteria]) -> list[EvaluationCriteria]:
        check_unique(value)
        return value

    @field_validator("fields")
    @classmethod
    def _known_targets(cls, value: dict[str, str]) -> dict[str, str]:
        for target in value:
            if target.partition(".")[0] not in _TARGETS:
                raise ValueError(f'"{target}" is not a field of a record; known are {", ".join(_TARGETS)}')
        return value

    def run_config(self, only: list[str] | None = None) -> EvaluationRunConfig:
        entries = [entry.model_dump(by_alias=True, exclude_unset=True) for entry in self.evaluators]
        return EvaluationRunConfig(
            evaluator_configs=entries,
            criteria=self.criteria,
            metadata=self.metadata,
            only=only or self.only,
            skip=self.skip,
            concurrency=self.concurrency,
        )


def load_plan(path: Path) -> ScoringPlan:
    """A plan from its file, with everything it extends."""
    raw = read_extended(path.resolve())
    try:
        plan = ScoringPlan.model_validate(raw)
    except ValidationError as error:
        lines = [f"  {path_text(_named(raw, item['loc']))}: {_message(item)}" for item in error.errors()]
        raise ConfigError("\n".join([f"{path} has problems:", *lines])) from None
    if not plan.evaluators:
        raise ConfigError(f"{path}: evaluators: at least one evaluator is needed")
    known = {criterion.name for criterion in plan.criteria}
    if unknown := [name for name in plan.thresholds if name not in known]:
        raise ConfigError(f'{path}: thresholds: no criterion is named "{unknown[0]}"')
    return plan


def _message(item: Any) -> str:
    return str(item["msg"]).removeprefix("Value error, ")


def _named(raw: Mapping[str, Any], place: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """A place in the spelling the file uses."""
    if place and place[0] == "evaluators" and "evaluatorConfigs" in raw:
        return ("evaluatorConfigs", *place[1:])
    return place
