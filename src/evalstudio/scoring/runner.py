"""Scoring one record: run the evaluators, weigh their scores, keep what was left out.

``EvaluationRunner`` resolves its evaluators once and scores any number of records.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, TypedDict, Unpack

from pydantic import ValidationError

from ..base.concurrency import run_sync
from ..base.problems import InvalidInput, problems_of
from ..evaluators.aggregate import criterion_of, run_evaluators, score_on_scale
from ..evaluators.contract import Embedder, LanguageModel, TurnFacts
from ..evaluators.criteria import Coverage, EvaluationCriteria
from ..evaluators.records import CriterionResult, EvaluationInput, facts_of
from ..evaluators.results import Finding, Outcome, Verdict
from ..llm.embeddings import LocalEmbedder
from ..plugins import PluginRegistry, create_registry
from .config import EvaluationRunConfig, resolve


@dataclass(slots=True)
class AggregatedEvaluationResult:
    """What a record came to."""

    overall_score: float | None
    results: list[CriterionResult]
    timestamp: int
    input_snapshot: Any
    outcome: Outcome = "unasserted"
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
    ) -> None:
        if storage is not None and not _can_save(storage):
            raise TypeError("storage must be an object with an async save_result(result) method")
        self.config = _parsed(EvaluationRunConfig, config, "config")
        self.resolved = resolve(self.config, registry or builtin_registry())
        self.entries = [one.entry for one in self.resolved]
        self.inline = all(entry.inline for entry in self.entries)
        self._given_types = {one.entry.key: one.given_type for one in self.resolved}
        self._llm = llm
        self._embedder = embedder or LocalEmbedder()
        self._storage = storage

    async def run(self, source: EvaluationInput | Mapping[str, Any]) -> AggregatedEvaluationResult:
        """Score one record and keep the result."""
        record = _parsed(EvaluationInput, source, "input")
        criteria = record.criteria or self.config.criteria
        facts = facts_of(record, criteria, llm=self._llm, embedder=self._embedder)
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

    def aggregated(self, verdict: Verdict, facts: TurnFacts) -> AggregatedEvaluationResult:
        """A verdict in the shape recorded results have."""
        declared = {criterion.name: criterion for criterion in facts.criteria}
        errors = [finding for finding in verdict.evaluator_results if finding.error is not None]
        return AggregatedEvaluationResult(
            overall_score=verdict.overall_score,
            results=[self._criterion_result(finding, declared) for finding in verdict.evaluator_results],
            timestamp=int(time.time() * 1000),
            input_snapshot=None,
            outcome=verdict.outcome,
            run_errors=[f"{f.name}: {f.error}" for f in errors if criterion_of(f, declared) is None],
            metrics=verdict.metrics,
            criterion_scores=verdict.criterion_scores,
            coverage=verdict.coverage or Coverage(errors=sum(1 for f in errors if f.error)),
        )

    def _criterion_result(
        self, finding: Finding, declared: Mapping[str, EvaluationCriteria]
    ) -> CriterionResult:
        name = criterion_of(finding, declared)
        return CriterionResult(
            criterion_name=name or finding.name,
            score=score_on_scale(finding, declared.get(name) if name else None),
            reasoning=finding.reason,
            evaluator_type=self._given_types[finding.name],
            error=finding.error,
            metadata=finding.metadata,
            skipped=finding.skipped,
        )

    def snapshot(self, criteria: Sequence[EvaluationCriteria]) -> dict[str, Any]:
        """What was scored with, for whoever reads the result later."""
        return {
            "evaluatorTypes": [one.given_type for one in self.resolved],
            "criteriaNames": [criterion.name for criterion in criteria],
            "storageProviderType": type(self._storage).__name__ if self._storage else "none",
            "metadataKeys": sorted(self.config.metadata),
        }


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
