"""Scoring plans: criteria, evaluators, field mapping and thresholds in a YAML or JSON file.

A plan may extend others: criteria and evaluators of the same name are replaced, new ones added.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import AliasChoices, ConfigDict, Field, ValidationError, field_validator

from ..configs import StrictConfig
from ..evaluators.criteria import EvaluationCriteria, Name, check_unique
from ..evaluators.records import EvaluationInput
from ..files import ConfigError, read_mapping
from ..llm.settings import LlmSettings
from ..schemas import path_text
from .config import EvaluationRunConfig

_TARGETS = [field.alias or name for name, field in EvaluationInput.model_fields.items() if name != "criteria"]


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

    extends: list[str] = Field(
        default_factory=list[str], description="Plans to build on, relative to this file"
    )
    criteria: list[EvaluationCriteria] = Field(default_factory=list[EvaluationCriteria])
    evaluators: list[PlannedEvaluator] = Field(
        default_factory=list[PlannedEvaluator],
        validation_alias=AliasChoices("evaluators", "evaluatorConfigs"),
    )
    fields: dict[str, str] = Field(
        default_factory=dict[str, str], description="Where each field of a record is found in a row"
    )
    thresholds: dict[str, float] = Field(
        default_factory=dict[str, float], description="Lowest acceptable mean per criterion, 0–1"
    )
    fail_under: float | None = Field(None, ge=0, le=1, description="Lowest acceptable overall score, 0–1")
    only: list[str] = Field(default_factory=list[str], description="Run only these types, kinds or costs")
    skip: list[str] = Field(default_factory=list[str], description="Leave out these types, kinds or costs")
    concurrency: int = Field(8, ge=1, description="Records waiting for a model at once")
    llm_settings: LlmSettings | None = Field(
        None, description="The model provider, for evaluators that need one"
    )
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    plugins: list[str] = Field(default_factory=list[str], description="Plugins, relative to this file")

    @field_validator("extends", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

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
    raw = _extended(path.resolve(), ())
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


def _extended(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    if path in seen:
        raise ConfigError(f"{path}: extends itself, through {' → '.join(p.name for p in (*seen, path))}")
    raw = read_mapping(path)
    bases: Any = raw.get("extends") or []
    merged: dict[str, Any] = {}
    for base in [bases] if isinstance(bases, str) else cast(list[Any], bases):
        if not isinstance(base, str):
            raise ConfigError(f"{path}: extends: expected a path or a list of paths")
        merged = _merge(merged, _extended((path.parent / base).resolve(), (*seen, path)))
    own = {key: item for key, item in raw.items() if key != "extends"}
    return _merge(merged, _absolute_plugins(own, path))


def _absolute_plugins(raw: dict[str, Any], path: Path) -> dict[str, Any]:
    """Plugins stay relative to the file that names them."""
    if isinstance(raw.get("plugins"), list):
        raw["plugins"] = [
            str((path.parent / item).resolve()) if isinstance(item, str) and item.startswith(".") else item
            for item in raw["plugins"]
        ]
    return raw


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        known = merged.get(key)
        if isinstance(known, list) and isinstance(value, list):
            merged[key] = _merge_lists(cast(list[Any], known), cast(list[Any], value))
        elif isinstance(known, dict) and isinstance(value, dict):
            merged[key] = {**cast(dict[str, Any], known), **cast(dict[str, Any], value)}
        else:
            merged[key] = value
    return merged


def _merge_lists(base: list[Any], over: list[Any]) -> list[Any]:
    names = {_name(item) for item in over} - {None}
    return [item for item in base if _name(item) not in names] + over


def _name(item: Any) -> str | None:
    return cast(dict[str, Any], item).get("name") if isinstance(item, dict) else None
