"""What to score with: evaluator entries in every accepted shape, and the choice of which to run.

Entries are resolved once, before the first record; a wrong one is refused here with its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput, Problem, ProblemList, suggestion
from ..base.strict_values import StrictValues
from ..evaluators.criteria import (
    EvaluationCriteria,
    Reference,
    check_unique,
    criterion_references,
)
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
ENTRIES = "evaluatorConfigs"
_ENTRY_KEYS = frozenset({"type", "config", "name", "gate", "reduce"})


# One name may stand without a list around it; editors are told so.
Names = Annotated[
    list[str],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


def _unique(criteria: list[EvaluationCriteria]) -> list[EvaluationCriteria]:
    check_unique(criteria)
    return criteria


Criteria = Annotated[list[EvaluationCriteria], AfterValidator(_unique)]


class EvaluationRunConfig(StrictValues):
    """Which evaluators score a record, and how."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", arbitrary_types_allowed=True
    )

    evaluator_configs: list[Any] = Field(description="Evaluator entries: type, config, name")
    criteria: Criteria = Field(default_factory=list[EvaluationCriteria])
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    only: Names = Field(default_factory=list[str], description="Run only these types, kinds or costs")
    skip: Names = Field(default_factory=list[str], description="Leave out these types, kinds or costs")
    concurrency: int = Field(8, ge=1, description="How many evaluators may wait at once")


@dataclass(frozen=True, slots=True)
class Resolved:
    """An entry with the type name its author wrote, and the criteria it names."""

    entry: Entry
    given_type: str
    references: tuple[Reference, ...] = ()


def resolve(config: EvaluationRunConfig, registry: PluginRegistry) -> list[Resolved]:
    """The entries a run will use, in order; what is wrong with any of them is told all at once."""
    if not config.evaluator_configs:
        raise InvalidInput(Problem("at least one evaluator is needed", (ENTRIES,)))
    problems = ProblemList()
    resolved: list[Resolved] = []
    for number, source in enumerate(config.evaluator_configs):
        with problems.collect(ENTRIES, number):
            one = _resolve_one(source, registry)
            named = [((ENTRIES, number, *path), name) for path, name in _references(one, source)]
            resolved.append(replace(one, references=tuple(named)))
    problems.check()
    chosen = [one for one in resolved if _selected(one.entry, config.only, config.skip)]
    if not chosen:
        raise InvalidInput(Problem("only and skip leave no evaluator to run", (ENTRIES,)))
    keyed = with_keys([one.entry for one in chosen])
    return [replace(one, entry=entry) for entry, one in zip(keyed, chosen, strict=True)]


def _references(one: Resolved, source: Any) -> list[Reference]:
    """The criteria an entry names, at the places where its author wrote them."""
    references = list(criterion_references(one.entry.config))
    if not isinstance(source, Mapping):
        return references
    fields = cast(Mapping[str, Any], source)
    return [(path[1:] if path[1] in fields else path, name) for path, name in references]


def _resolve_one(source: Any, registry: PluginRegistry) -> Resolved:
    if isinstance(source, Entry):
        return Resolved(source, source.definition.type)
    if isinstance(source, EvaluatorDefinition):
        return Resolved(source.use(), source.type)
    if isinstance(source, Mapping):
        return _from_mapping(dict(cast(Mapping[str, Any], source)), registry)
    if is_class_style(source):
        definition = adapt_class(source)
        return Resolved(definition.use(), definition.type)
    raise InvalidInput("expected an object with a type")


def _from_mapping(fields: dict[str, Any], registry: PluginRegistry) -> Resolved:
    kind = fields.get("type")
    if not isinstance(kind, str) or not kind:
        raise InvalidInput(Problem("is missing", ("type",)))
    problems = ProblemList()
    definition = registry.get_evaluator(LEGACY_NAMES.get(kind, kind))
    if definition is None:
        known = [item["type"] for item in registry.list_evaluator_types()]
        problems.append(Problem(f'no evaluator is called "{kind}"', ("type",), suggestion(kind, known)))
    if not isinstance(fields.get("config") or {}, Mapping):
        problems.append(Problem("expected an object with settings", ("config",)))
    if not isinstance(fields.get("name") or "", str):
        problems.append(Problem("expected text", ("name",)))
    problems.check()
    assert definition is not None, "an unknown type is a problem"
    # The older shape writes an evaluator's settings beside its type.
    beside = {key: item for key, item in fields.items() if key not in _ENTRY_KEYS}
    try:
        entry = definition.use(
            {**beside, **(fields.get("config") or {})},
            gate=fields.get("gate"),
            name=fields.get("name"),
            reduce=fields.get("reduce"),
        )
    except InvalidInput as error:
        for one in error.problems:
            written_beside = len(one.path) > 1 and one.path[1] in beside
            problems.append(replace(one, path=one.path[1:]) if written_beside else one)
        raise InvalidInput(*problems) from None
    return Resolved(entry, kind)


def _selected(entry: Entry, only: Sequence[str], skip: Sequence[str]) -> bool:
    marks = {entry.definition.type, entry.kind, entry.definition.cost, entry.key}
    marks |= {old for old, new in LEGACY_NAMES.items() if new == entry.definition.type}
    return (not only or not marks.isdisjoint(only)) and marks.isdisjoint(skip)
