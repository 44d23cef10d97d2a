"""The result of a record in one pass over its findings, where each of them is a plain one.

Errors, skips, scores without a place on their scale and criteria of a record's own take the way through
``EvaluationRunner.aggregated``, which says all there is to say about them. Both give the same result.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from ..evaluators.aggregate import criterion_of, outcome_of, score_on_scale
from ..evaluators.criteria import Excluded, Score, normalize, weighted_mean
from ..evaluators.results import UNSEEN_MODEL, Finding
from ..messages import read_cost
from .rows import Record
from .runner import EvaluationRunner

# What metadata says of a finding that is not a plain one.
_NOT_PLAIN = frozenset({"missing", "unbounded", UNSEEN_MODEL})


class DirectResults:
    """Makes results of findings, for one runner and one dataset."""

    def __init__(self, runner: EvaluationRunner, dataset: str) -> None:
        self._criteria = runner.config.criteria
        self._declared = {criterion.name: criterion for criterion in self._criteria}
        self._given_types = {one.entry.key: one.given_type for one in runner.resolved}
        self._metadata = runner.config.metadata
        self._dataset = dataset
        # An entry that names a criterion nobody declared may be silent, which takes more to tell.
        self._every_name_declared = all(name in self._declared for _, name in runner.references)

    def result(self, record: Record, findings: Sequence[Finding]) -> dict[str, Any] | None:
        """What a record came to; nothing where its findings are not all plain ones."""
        if record.facts.criteria is not self._criteria or not self._every_name_declared:
            return None
        evaluators: list[dict[str, Any]] = []
        results: list[dict[str, Any]] = []
        scores: dict[str, list[float]] = {}
        for finding in findings:
            name = criterion_of(finding, self._declared)
            criterion = self._declared.get(name) if name else None
            if not _is_plain(finding) or (name and criterion is None):
                return None
            score = finding.score if finding.score is not None else score_on_scale(finding, criterion)
            if criterion is not None and score is not None:
                try:
                    scores.setdefault(criterion.name, []).append(normalize(score, criterion))
                except Excluded:
                    return None
            given_type = self._given_types[finding.name]
            evaluators.append(_evaluator_result(finding, name, given_type))
            results.append(_criterion_result(finding, name, score, given_type))
        return self._put_together(record, findings, evaluators, results, scores)

    def _put_together(
        self,
        record: Record,
        findings: Sequence[Finding],
        evaluators: list[dict[str, Any]],
        results: list[dict[str, Any]],
        scores: dict[str, list[float]],
    ) -> dict[str, Any]:
        means = {name: of[0] if len(of) == 1 else math.fsum(of) / len(of) for name, of in scores.items()}
        outcome, reason, _, _ = outcome_of(findings)
        result: dict[str, Any] = {
            "recordId": record.id,
            "line": record.line,
            "overallScore": weighted_mean(means, self._declared),
            "success": outcome == "pass",
            "outcome": outcome,
            "reason": reason,
            "evaluatorResults": evaluators,
            "results": results,
            "criterionScores": means,
            "metrics": {f.name: f.value for f in findings if f.kind == "metric" and f.value is not None},
            "coverage": self._coverage(means),
            "runErrors": [],
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

    def _coverage(self, means: dict[str, float]) -> dict[str, Any]:
        declared = self._declared
        return {
            "criteria": len(declared),
            "scored": len(means),
            "missing": []
            if len(means) == len(declared)
            else [name for name in declared if name not in means],
            "unknown": [],
            "excluded": [],
            "errors": 0,
            "skipped": 0,
        }


def _is_plain(finding: Finding) -> bool:
    return finding.error is None and not finding.skipped and _NOT_PLAIN.isdisjoint(finding.metadata)


def _evaluator_result(finding: Finding, name: str | None, given_type: str) -> dict[str, Any]:
    is_metric = finding.kind == "metric"
    fields: dict[str, Any] = {
        "name": finding.name,
        "type": given_type,
        "kind": finding.kind,
        "outcome": "measured" if is_metric else "pass" if finding.success else "fail",
        "success": None if is_metric else finding.success,
        "value": finding.value,
        "threshold": finding.threshold,
    }
    if name is not None:
        fields["criterionName"] = name
    return fields


def _criterion_result(
    finding: Finding, name: str | None, score: Score | None, given_type: str
) -> dict[str, Any]:
    fields: dict[str, Any] = {"criterionName": name or finding.name, "score": score}
    if finding.reason:
        fields["reasoning"] = finding.reason
    fields["evaluatorType"] = given_type
    if finding.metadata:
        fields["metadata"] = finding.metadata
    return fields


def _usage(record: Record) -> dict[str, float | None]:
    """What the agent says it used; who asks no model uses nothing."""
    return {
        "agentTokens": record.agent_tokens,
        "agentCost": read_cost(record.facts.metadata.get("cost")),
        "judgeTokens": 0,
        "judgeCost": 0,
    }
