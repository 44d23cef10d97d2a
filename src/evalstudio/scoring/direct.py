"""The result of a record in one pass over what its evaluators found, where all of it is plain.

Errors, skips, scores without a place on their scale and criteria of a record's own take the way through
``EvaluationRunner.aggregated``, which says all there is to say about them. Both give the same result. What
is the same in every result is encoded once.
"""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ..base.json_text import json_bytes
from ..base.lazy_dataclass import dataclass
from ..evaluators.aggregate import ALL_PASSED, NOTHING_ASSERTED
from ..evaluators.contract import EvaluationResult
from ..evaluators.criteria import (
    Coverage,
    EvaluationCriteria,
    Excluded,
    Score,
    normalize,
    on_scale,
    relative_weights,
)
from ..evaluators.results import UNSEEN_MODEL, Finding
from ..evaluators.running import InlineOutcome
from ..messages import read_cost
from .config import Resolved
from .rows import Record
from .runner import EvaluationRunner
from .summary import EvaluatorRow

# What metadata says of a finding that is not a plain one.
_NOT_PLAIN = frozenset({"missing", "unbounded", UNSEEN_MODEL})
# How many encoded rows of an entry are kept: those of yes and no repeat, most measurements do not.
_MOST_KEPT = 64
_SUCCESS = {"pass": True, "fail": False, "measured": None}


@dataclass(slots=True)
class DirectResult:
    """A result whose rows are encoded, and what a summary needs of these."""

    fields: dict[str, Any]
    rows: list[EvaluatorRow]


class _Rows:
    """What the rows of an entry have in common that are about one criterion, or about none."""

    def __init__(self, one: Resolved, name: str | None, criterion: EvaluationCriteria | None) -> None:
        entry = one.entry
        self.entry_name, self.kind, self.given_type = entry.key, entry.kind, one.given_type
        self.criterion_name, self.criterion = name or entry.key, criterion
        self.is_metric = entry.kind == "metric"
        self.failed = f"{entry.definition.label} failed"
        self.awaited = entry.gate == "eventually"
        before = {"name": entry.key, "type": one.given_type, "kind": entry.kind}
        after = {"threshold": entry.threshold} | ({} if name is None else {"criterionName": name})
        self._heads = {
            outcome: json_bytes({**before, "outcome": outcome, "success": success})[:-1] + b',"value":'
            for outcome, success in _SUCCESS.items()
        }
        self._tail = b"," + json_bytes(after)[1:]
        self._kept: dict[tuple[str, float | None], orjson.Fragment] = {}

    def encoded(self, outcome: str, value: float | None) -> orjson.Fragment:
        """The row of the evaluator."""
        if value == 0 and math.copysign(1, value) < 0:
            # The sign of a zero is written, and no dict tells it apart.
            return self._row(outcome, value)
        row = self._kept.get((outcome, value))
        if row is None:
            row = self._row(outcome, value)
            if len(self._kept) < _MOST_KEPT:
                self._kept[outcome, value] = row
        return row

    def _row(self, outcome: str, value: float | None) -> orjson.Fragment:
        return orjson.Fragment(self._heads[outcome] + orjson.dumps(value) + self._tail)

    def score(self, found: EvaluationResult | Finding) -> Score | None:
        """The raw score of what brings none, as ``score_on_scale`` finds it."""
        if found.value is None:
            return found.success
        if self.criterion is None or self.is_metric:
            return found.value
        return on_scale(found.value, self.criterion, 0.0 if found.success else math.inf)


class _RowsByName(dict[str | None, _Rows | None]):
    """The rows of an entry by the criterion that a result of it names; none where nobody declared it."""

    def __init__(self, one: Resolved, declared: Mapping[str, EvaluationCriteria]) -> None:
        self._one = one
        self._declared = declared

    def __missing__(self, named: str | None) -> _Rows | None:
        name = named or (self._one.entry.key if self._one.entry.key in self._declared else None)
        criterion = self._declared.get(name) if name else None
        if name and criterion is None:
            return None
        rows = self[named] = _Rows(self._one, name, criterion)
        return rows


class _Parts:
    """What the findings of a record came to so far."""

    __slots__ = (
        *("evaluators", "results", "rows", "scores", "metrics"),
        *("asserted", "failure", "failure_awaited"),
    )

    def __init__(self) -> None:
        self.evaluators: list[orjson.Fragment] = []
        self.results: list[dict[str, Any]] = []
        self.rows: list[EvaluatorRow] = []
        self.scores: dict[str, list[float]] = {}
        self.metrics: dict[str, float] = {}
        self.asserted = False
        self.failure: str | None = None
        self.failure_awaited = False

    def add(self, found: EvaluationResult | Finding, rows: _Rows) -> None:
        """Take a plain one; ``Excluded`` where its score has no place on its scale."""
        value, reason = found.value, found.reason
        score = rows.score(found) if found.score is None else found.score
        if rows.criterion is not None and score is not None:
            place = normalize(score, rows.criterion)
            if rows.criterion_name in self.scores:
                self.scores[rows.criterion_name].append(place)
            else:
                self.scores[rows.criterion_name] = [place]
        if rows.is_metric:
            outcome = "measured"
            if value is not None:
                self.metrics[rows.entry_name] = value
        elif found.success:
            outcome, self.asserted = "pass", True
        else:
            outcome, self.asserted = "fail", True
            if self.failure is None or self.failure_awaited:
                self._fail(rows.awaited and not found.decisive, reason or rows.failed)
        self.evaluators.append(rows.encoded(outcome, value))
        self.rows.append((rows.entry_name, rows.kind, outcome, value))
        metadata = found.metadata
        result: dict[str, Any] = {
            "criterionName": rows.criterion_name,
            "score": score,
            "reasoning": reason,
            "evaluatorType": rows.given_type,
            "metadata": metadata,
        }
        if not reason:
            del result["reasoning"]
        if not metadata:
            del result["metadata"]
        self.results.append(result)

    def _fail(self, awaited: bool, reason: str) -> None:
        """The first failure is the reason; what might still have come later counts after all others."""
        if self.failure is None or (self.failure_awaited and not awaited):
            self.failure, self.failure_awaited = reason, awaited

    def verdict(self) -> tuple[str, str]:
        if self.failure is not None:
            return "fail", self.failure
        return ("pass", ALL_PASSED) if self.asserted else ("unasserted", NOTHING_ASSERTED)


@dataclass(frozen=True, slots=True)
class _Scored:
    """What is the same for all records that were scored on the same criteria."""

    weights: Sequence[float] | None
    total: float
    coverage: orjson.Fragment


class DirectResults:
    """Makes results of what was found, for one runner and one dataset."""

    def __init__(self, runner: EvaluationRunner, dataset: str) -> None:
        self._criteria = runner.config.criteria
        self._declared = {criterion.name: criterion for criterion in self._criteria}
        self._entries = [_RowsByName(one, self._declared) for one in runner.resolved]
        self._metadata = runner.config.metadata
        self._dataset = dataset
        self._scored: dict[tuple[str, ...], _Scored] = {}
        # An entry that names a criterion nobody declared may be silent, which takes more to tell.
        self._every_name_declared = all(name in self._declared for _, name in runner.references)

    def result(self, record: Record, outcomes: Sequence[InlineOutcome]) -> DirectResult | None:
        """What a record came to; nothing where not all that was found is plain."""
        if record.facts.criteria is not self._criteria or not self._every_name_declared:
            return None
        parts = _Parts()
        try:
            for rows_by_name, outcome in zip(self._entries, outcomes, strict=True):
                if isinstance(outcome, EvaluationResult):
                    outcome = (outcome,)
                elif not all(map(_is_plain, outcome)):
                    return None
                for found in outcome:
                    rows = rows_by_name[found.criterion_name]
                    if rows is None or not _NOT_PLAIN.isdisjoint(found.metadata):
                        return None
                    parts.add(found, rows)
        except Excluded:
            return None
        return DirectResult(self._put_together(record, parts), parts.rows)

    def _put_together(self, record: Record, parts: _Parts) -> dict[str, Any]:
        means = {n: of[0] if len(of) == 1 else math.fsum(of) / len(of) for n, of in parts.scores.items()}
        scored = self._scored.get(key := tuple(means)) or self._scored_on(key)
        overall = None
        if scored.weights is not None:
            overall = math.fsum(map(operator.mul, means.values(), scored.weights)) / scored.total
        outcome, reason = parts.verdict()
        result: dict[str, Any] = {
            "recordId": record.id,
            "line": record.line,
            "overallScore": overall,
            "success": outcome == "pass",
            "outcome": outcome,
            "reason": reason,
            "evaluatorResults": parts.evaluators,
            "results": parts.results,
            "criterionScores": means,
            "metrics": parts.metrics,
            "coverage": scored.coverage,
            "runErrors": (),
            "timestamp": int(time.time() * 1000),
            "inputSnapshot": {"dataset": self._dataset, "recordId": record.id, "line": record.line},
        }
        if record.agent_id:
            result["agentId"] = record.agent_id
        if record.session_id:
            result["sessionId"] = record.session_id
        if self._metadata:
            result["metadata"] = self._metadata
        result["usage"] = _usage(record)
        return result

    def _scored_on(self, names: tuple[str, ...]) -> _Scored:
        weights = relative_weights(names, self._declared)
        missing = [name for name in self._declared if name not in names]
        coverage = Coverage(len(self._declared), len(names), missing)
        total = 0.0 if weights is None else math.fsum(weights)
        scored = _Scored(weights, total, orjson.Fragment(json_bytes(coverage.to_json())))
        if len(self._scored) < _MOST_KEPT:
            self._scored[names] = scored
        return scored


def _is_plain(finding: Finding) -> bool:
    return finding.error is None and not finding.skipped


def _usage(record: Record) -> dict[str, float | None]:
    """What the agent says it used; who asks no model uses nothing."""
    return {
        "agentTokens": record.agent_tokens,
        "agentCost": read_cost(record.facts.metadata.get("cost")),
        "judgeTokens": 0,
        "judgeCost": 0,
    }
