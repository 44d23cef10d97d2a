"""What to score with: evaluator entries in every accepted shape, and the choice of which to run.

Entries are resolved once, before the first record; a wrong one is refused here with its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator
from pydantic.alias_generators import to_camel

from ..configs import InvalidConfig, closest
from ..evaluators.criteria import EvaluationCriteria, check_unique
from ..evaluators.definition import Entry, EvaluatorDefinition, adapt_class, is_class_style, with_keys
from ..plugins import PluginRegistry

LEGACY_NAMES = {
    "RuleBased": "rule-based",
    "LLMJudge": "criteria-judge",
    "NLPAccuracy": "nlp-accuracy",
    "ToolUsage": "tool-usage",
    "LexicalSimilarity": "lexical-similarity",
    "KeywordCoverage": "keyword-coverage",
    "Sentiment": "sentiment",
    "Toxicity": "toxicity",
}
_ENTRY_KEYS = frozenset({"type", "config", "name", "gate", "reduce"})


def _one_or_many(value: object) -> object:
    return [value] if isinstance(value, str) else value


# One name may stand without a list around it; editors are told so.
Names = Annotated[
    list[str],
    BeforeValidator(_one_or_many),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class EvaluationRunConfig(BaseModel):
    """Which evaluators score a record, and how."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", arbitrary_types_allowed=True
    )

    evaluator_configs: list[Any] = Field(description="Evaluator entries: type, config, name")
    criteria: list[EvaluationCriteria] = Field(default_factory=list[EvaluationCriteria])
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    only: Names = Field(default_factory=list[str], description="Run only these types, kinds or costs")
    skip: Names = Field(default_factory=list[str], description="Leave out these types, kinds or costs")
    concurrency: int = Field(8, ge=1, description="How many evaluators may wait at once")

    @field_validator("criteria")
    @classmethod
    def _unique(cls, value: list[EvaluationCriteria]) -> list[EvaluationCriteria]:
        check_unique(value)
        return value


@dataclass(frozen=True, slots=True)
class Resolved:
    """An entry with the type name its author wrote."""

    entry: Entry
    given_type: str


def resolve(config: EvaluationRunConfig, registry: PluginRegistry) -> list[Resolved]:
    """The entries a run will use, in order."""
    if not config.evaluator_configs:
        raise InvalidConfig("evaluatorConfigs", [("", "at least one evaluator is needed")])
    found = [_resolve_one(place, given, registry) for place, given in enumerate(config.evaluator_configs)]
    chosen = [one for one in found if _selected(one.entry, config.only, config.skip)]
    if not chosen:
        raise InvalidConfig("evaluatorConfigs", [("", "only and skip leave no evaluator to run")])
    keyed = with_keys([one.entry for one in chosen])
    return [Resolved(entry, one.given_type) for entry, one in zip(keyed, chosen, strict=True)]


def _resolve_one(place: int, given: Any, registry: PluginRegistry) -> Resolved:
    where = f"evaluatorConfigs[{place}]"
    if isinstance(given, Entry):
        return Resolved(given, given.definition.type)
    if isinstance(given, EvaluatorDefinition):
        return Resolved(given.use(), given.type)
    if isinstance(given, Mapping):
        return _from_mapping(where, dict(cast(Mapping[str, Any], given)), registry)
    if is_class_style(given):
        definition = adapt_class(given)
        return Resolved(definition.use(), definition.type)
    raise InvalidConfig(where, [("", "expected an object with a type")])


def _from_mapping(where: str, given: dict[str, Any], registry: PluginRegistry) -> Resolved:
    kind = given.get("type")
    if not isinstance(kind, str) or not kind:
        raise InvalidConfig(where, [("type", "is missing")])
    definition = registry.get_evaluator(LEGACY_NAMES.get(kind, kind))
    if definition is None:
        known = [item["type"] for item in registry.list_evaluator_types()]
        raise InvalidConfig(where, [("type", f'no evaluator is called "{kind}"{closest(kind, known)}')])
    if not isinstance(given.get("config") or {}, Mapping):
        raise InvalidConfig(f"{where} ({kind})", [("config", "expected an object with settings")])
    if not isinstance(given.get("name") or "", str):
        raise InvalidConfig(f"{where} ({kind})", [("name", "expected text")])
    # The older shape writes an evaluator's settings beside its type.
    beside = {key: item for key, item in given.items() if key not in _ENTRY_KEYS}
    try:
        entry = definition.use(
            {**beside, **(given.get("config") or {})},
            gate=given.get("gate"),
            name=given.get("name"),
            reduce=given.get("reduce"),
        )
    except InvalidConfig as error:
        raise InvalidConfig(f"{where} ({kind})", error.problems) from None
    return Resolved(entry, kind)


def _selected(entry: Entry, only: Sequence[str], skip: Sequence[str]) -> bool:
    marks = {entry.definition.type, entry.kind, entry.definition.cost, entry.key}
    marks |= {old for old, new in LEGACY_NAMES.items() if new == entry.definition.type}
    return (not only or not marks.isdisjoint(only)) and marks.isdisjoint(skip)
