"""Scoring one record: run the evaluators, weigh their scores, keep what was left out.

``EvaluationRunner`` resolves its evaluators once and scores any number of records.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any, Protocol, TypedDict, Unpack

from pydantic import ValidationError

from ..base.concurrency import run_sync
from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput, problems_of, suggestion
from ..evaluators.aggregate import criterion_of, run_evaluators, score_on_scale
from ..evaluators.contract import Embedder, Kind, LanguageModel, TurnFacts
from ..evaluators.criteria import Coverage, EvaluationCriteria, check_declared
from ..evaluators.limits import DEFAULT_LIMITS, EvaluatorLimits
from ..evaluators.records import CriterionResult, EvaluationInput, facts_of
from ..evaluators.results import Finding, Outcome, Verdict
from ..llm.embeddings import embedder_of
from ..plugins import PluginRegistry, create_registry
from .config import EvaluationRunConfig, Resolved, resolve


@dataclass(slots=True)
class EvaluatorResult:
    """What one evaluator came to on a record. ``success`` is there where it could have failed.

    ``outcome`` is pass, fail, error or skipped; of a metric measured, missing or error.
    """

    name: str
    type: str
    kind: Kind
    outcome: str
    success: bool | None = None
    value: float | None = None
    threshold: float | None = None
    criterion_name: str | None = None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "name": self.name,
            "type": self.type,
            "kind": self.kind,
            "outcome": self.outcome,
            "success": self.success,
            "value": self.value,
            "threshold": self.threshold,
        }
        if self.criterion_name is not None:
            fields["criterionName"] = self.criterion_name
        if self.reason:
            fields["reason"] = self.reason
        return fields


@dataclass(slots=True)
class AggregatedEvaluationResult:
    """What a record came to."""

    overall_score: float | None
    results: list[CriterionResult]
    timestamp: int
    input_snapshot: Any
    outcome: Outcome = "unasserted"
    reason: str = ""
    evaluator_results: list[EvaluatorResult] = field(default_factory=list[EvaluatorResult])
    agent_id: str | None = None
    session_id: str | None = None
    evaluation_config_snapshot: dict[str, Any] = field(default_factory=dict[str, Any])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    run_errors: list[str] = field(default_factory=list[str])
    metrics: dict[str, float] = field(default_factory=dict[str, float])
    criterion_scores: dict[str, float] = field(default_factory=dict[str, float])
    coverage: Coverage = field(default_factory=Coverage)

    @property
    def success(self) -> bool:
        return self.outcome == "pass"

    def to_json(self) -> dict[str, Any]:
        snapshot = self.input_snapshot
        if isinstance(snapshot, EvaluationInput):
            snapshot = snapshot.model_dump(by_alias=True, exclude_unset=True)
        always: dict[str, Any] = {
            "overallScore": self.overall_score,
            "success": self.success,
            "outcome": self.outcome,
            "reason": self.reason,
            "evaluatorResults": [result.to_json() for result in self.evaluator_results],
            "results": [result.to_json() for result in self.results],
            "criterionScores": self.criterion_scores,
            "metrics": self.metrics,
            "coverage": self.coverage.to_json(),
            "runErrors": self.run_errors,
            "timestamp": self.timestamp,
            "inputSnapshot": snapshot,
        }
        optional = {
            "agentId": self.agent_id,
            "sessionId": self.session_id,
            "evaluationConfigSnapshot": self.evaluation_config_snapshot,
            "metadata": self.metadata,
        }
        return always | {key: value for key, value in optional.items() if value}


class EvaluationStorageProvider(Protocol):
    """Anything that keeps results."""

    async def save_result(self, result: AggregatedEvaluationResult) -> None: ...


@lru_cache(maxsize=1)
def builtin_registry() -> PluginRegistry:
    return create_registry()


class EvaluationRunner:
    """Scores records with one set of evaluators."""

    def __init__(
        self,
        config: EvaluationRunConfig | Mapping[str, Any],
        *,
        registry: PluginRegistry | None = None,
        llm: LanguageModel | None = None,
        embedder: Embedder | None = None,
        storage: EvaluationStorageProvider | None = None,
        limits: EvaluatorLimits = DEFAULT_LIMITS,
    ) -> None:
        if storage is not None and not _can_save(storage):
            raise TypeError("storage must be an object with an async save_result(result) method")
        self.config = _parsed(EvaluationRunConfig, config, "config")
        self.resolved = resolve(self.config, registry or builtin_registry())
        self.entries = [one.entry for one in self.resolved]
        self.inline = all(entry.inline for entry in self.entries)
        self._given_types = {one.entry.key: one.given_type for one in self.resolved}
        self._thresholds = {entry.key: entry.threshold for entry in self.entries}
        self.references = [reference for one in self.resolved for reference in one.references]
        declared = {criterion.name for criterion in self.config.criteria}
        self._undeclared = dict.fromkeys(name for _, name in self.references if name not in declared)
        self._llm = llm
        self._embedder = embedder or embedder_of(llm)
        self._storage = storage
        self._limits = limits

    async def run(self, source: EvaluationInput | Mapping[str, Any]) -> AggregatedEvaluationResult:
        """Score one record and keep the result."""
        record = _parsed(EvaluationInput, source, "input")
        criteria = record.criteria or self.config.criteria
        self.check_criteria(record)
        facts = facts_of(record, criteria, llm=self._llm, embedder=self._embedder, limits=self._limits)
        snapshot = _copy_of(record)
        verdict = await run_evaluators(self.entries, facts, asyncio.Semaphore(self.config.concurrency))
        outcome = self.aggregated(verdict, facts)
        outcome.input_snapshot = snapshot
        outcome.agent_id, outcome.session_id = record.agent_id, record.session_id
        outcome.evaluation_config_snapshot = self.snapshot(criteria)
        outcome.metadata = dict(self.config.metadata)
        if self._storage is not None:
            await self._save(outcome)
        return outcome

    async def _save(self, outcome: AggregatedEvaluationResult) -> None:
        assert self._storage is not None
        try:
            saving: Any = self._storage.save_result(outcome)
            if inspect.isawaitable(saving):
                await saving
        except Exception as error:
            outcome.run_errors.append(f"{type(self._storage).__name__} could not save the result: {error}")

    def check_criteria(self, record: EvaluationInput) -> None:
        """Refuse names that the config does not declare, unless the record brings criteria of its own."""
        if not record.criteria:
            check_declared(self.references, self.config.criteria)

    def aggregated(self, verdict: Verdict, facts: TurnFacts) -> AggregatedEvaluationResult:
        """A verdict in the shape recorded results have."""
        declared = {criterion.name: criterion for criterion in facts.criteria}
        if self._undeclared:
            self._check_names(verdict, declared)
        results: list[CriterionResult] = []
        evaluators: list[EvaluatorResult] = []
        errors: list[str] = []
        for finding in verdict.evaluator_results:
            name = criterion_of(finding, declared)
            results.append(self._criterion_result(finding, name, declared))
            evaluators.append(self._evaluator_result(finding, name))
            if finding.error is not None and name is None:
                errors.append(f"{finding.name}: {finding.error}")
        if len(told := {finding.name for finding in verdict.evaluator_results}) < len(self.entries):
            silent = (one for one in self.resolved if one.entry.key not in told)
            evaluators += [_without_result(one, declared) for one in silent]
        return AggregatedEvaluationResult(
            overall_score=verdict.overall_score,
            results=results,
            timestamp=int(time.time() * 1000),
            input_snapshot=None,
            outcome=verdict.outcome,
            reason=verdict.reason,
            evaluator_results=evaluators,
            run_errors=errors,
            metrics=verdict.metrics,
            criterion_scores=verdict.criterion_scores,
            coverage=verdict.coverage or Coverage(errors=len(errors)),
        )

    def _check_names(self, verdict: Verdict, declared: Mapping[str, EvaluationCriteria]) -> None:
        """A record's own criteria may leave out some of the config's; a name in neither is a mistake."""
        unknown = [name for name in self._undeclared if name not in declared]
        if not unknown:
            return
        verdict.coverage = verdict.coverage or Coverage()
        verdict.coverage.unknown += [name for name in unknown if name not in verdict.coverage.unknown]
        if verdict.outcome == "pass":
            hint = suggestion(unknown[0], declared)
            message = f'"{unknown[0]}" is not among the criteria'
            verdict.outcome, verdict.score, verdict.fault = "error", None, "evaluator"
            verdict.reason = f"{message}; {hint}" if hint else message

    def _evaluator_result(self, finding: Finding, criterion_name: str | None) -> EvaluatorResult:
        name, kind, word = finding.name, finding.kind, finding.word
        return EvaluatorResult(
            name,
            self._given_types[name],
            kind,
            word,
            None if kind == "metric" or word == "skipped" else finding.success,
            None if word == "missing" else finding.value,
            self._thresholds[name],
            criterion_name,
            finding.reason if word == "skipped" else "",
        )

    def _criterion_result(
        self, finding: Finding, name: str | None, declared: Mapping[str, EvaluationCriteria]
    ) -> CriterionResult:
        return CriterionResult(
            name or finding.name,
            score_on_scale(finding, declared.get(name) if name else None),
            finding.reason,
            self._given_types[finding.name],
            finding.error,
            finding.metadata,
            finding.skipped,
        )

    def snapshot(self, criteria: Sequence[EvaluationCriteria]) -> dict[str, Any]:
        """What was scored with, for whoever reads the result later."""
        return {
            "evaluatorTypes": [one.given_type for one in self.resolved],
            "criteriaNames": [criterion.name for criterion in criteria],
            "storageProviderType": type(self._storage).__name__ if self._storage else "none",
            "metadataKeys": sorted(self.config.metadata),
        }


def _without_result(one: Resolved, declared: Mapping[str, EvaluationCriteria]) -> EvaluatorResult:
    entry = one.entry
    absent = next((name for _, name in one.references if name not in declared), None)
    reason = "gave no result" if absent is None else f'"{absent}" is not among the criteria of this record'
    outcome = "missing" if entry.kind == "metric" else "skipped"
    return EvaluatorResult(entry.key, one.given_type, entry.kind, outcome, reason=reason)


def _can_save(storage: object) -> bool:
    return not isinstance(storage, type) and callable(getattr(storage, "save_result", None))


def _copy_of(record: EvaluationInput) -> EvaluationInput | dict[str, Any]:
    """The record as it is now, whatever becomes of it later."""
    try:
        return record.model_copy(deep=True)
    except Exception:
        # A context may hold a lock or a client, which nothing can copy: their text must do.
        return record.model_dump(mode="json", by_alias=True, exclude_unset=True, fallback=str)


def _parsed(model: Any, value: Any, what: str) -> Any:
    if isinstance(value, model):
        return value
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InvalidInput(*problems_of(error, value, model)).within(subject=what) from None


class RunnerOptions(TypedDict, total=False):
    """What a runner may be given beside its config."""

    registry: PluginRegistry | None
    llm: LanguageModel | None
    embedder: Embedder | None
    storage: EvaluationStorageProvider | None


async def run_evaluation(
    record: EvaluationInput | Mapping[str, Any],
    config: EvaluationRunConfig | Mapping[str, Any],
    **options: Unpack[RunnerOptions],
) -> AggregatedEvaluationResult:
    """Score one record."""
    return await EvaluationRunner(config, **options).run(record)


def run_evaluation_sync(
    record: EvaluationInput | Mapping[str, Any],
    config: EvaluationRunConfig | Mapping[str, Any],
    **options: Unpack[RunnerOptions],
) -> AggregatedEvaluationResult:
    """Score one record from plain code, also where a loop is already running."""
    return run_sync(lambda: run_evaluation(record, config, **options))
