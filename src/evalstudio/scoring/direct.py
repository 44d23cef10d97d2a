"""The result line of a record in one pass over what its evaluators found, where all of it is plain.

Errors, skips, scores without a place on their scale and criteria of a record's own take the way through
``EvaluationRunner.aggregated``, which says all there is to say about them. Both give the same line. What
is the same in every line is encoded once.
"""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Mapping, Sequence

import orjson

from ..base.json_text import json_bytes, strict_json_bytes
from ..base.lazy_dataclass import dataclass
from ..evaluators.aggregate import ALL_PASSED, NOTHING_ASSERTED
from ..evaluators.contract import EvaluationResult, RepeatedResult
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
from .summary import EvaluatorRow, RecordCount

# What metadata says of a finding that is not a plain one.
_NOT_PLAIN = frozenset({"missing", "unbounded", UNSEEN_MODEL})
# How many of what repeats are kept.
_MOST_KEPT = 5_000
# Of what all results of a record come to together, about a kilobyte each.
_MOST_COMBINED = 5_000
_NO_NUMBERS: dict[str, float] = {}
_SUCCESS = {"pass": True, "fail": False, "measured": None}
_VERDICTS = {
    outcome: json_bytes({"success": outcome == "pass", "outcome": outcome})[1:-1]
    for outcome in ("pass", "fail", "unasserted")
}
Usage = dict[str, float | None]
_NO_USAGE: Usage = {"agentTokens": None, "agentCost": None, "judgeTokens": 0, "judgeCost": 0}
_NOTHING_USED = _NO_USAGE, json_bytes(_NO_USAGE)

Failure = tuple[bool, str]
"""Whether what failed might still have come later, and the reason."""
Place = tuple[str, float]
"""A criterion, and a number from 0 to 1."""
Part = tuple[bytes, bytes, EvaluatorRow, Place | None, Failure | None]
"""What one result adds to a line: the evaluator's row and the result, encoded; what is counted of it; its
place on the scale of its criterion; and what it fails the record with."""
_Found = tuple[
    bytes,
    tuple[str, float | None, dict[str, float], dict[str, float], Sequence[EvaluatorRow]],
    Sequence[InlineOutcome],
]
"""What all results of a record come to: their part of the line, what is counted, and these results."""


DirectResult = tuple[bytes, RecordCount]
"""A result as a line, and what is counted of it."""


class _Rows:
    """What the results of an entry have in common that are about one criterion, or about none."""

    def __init__(self, one: Resolved, name: str | None, criterion: EvaluationCriteria | None) -> None:
        entry = one.entry
        self._entry_name, self._kind, self._given_type = entry.key, entry.kind, one.given_type
        self._criterion_name, self._criterion = name or entry.key, criterion
        self._is_metric = entry.kind == "metric"
        # Where a value is brought to the scale of a criterion.
        self._on_scale = None if self._is_metric else criterion
        self._failed = f"{entry.definition.label} failed"
        self._awaited = entry.gate == "eventually"
        before = {"name": entry.key, "type": one.given_type, "kind": entry.kind}
        after = {"threshold": entry.threshold} | ({} if name is None else {"criterionName": name})
        self._heads = {
            outcome: json_bytes({**before, "outcome": outcome, "success": success})[:-1] + b',"value":'
            for outcome, success in _SUCCESS.items()
        }
        self._tail = b"," + json_bytes(after)[1:]

    def part(self, found: EvaluationResult | Finding) -> Part:
        """What a plain result adds; ``Excluded`` where its score has no place on its scale."""
        value, reason, failure = found.value, found.reason, None
        score = found.score
        if score is None:
            score = self._score(found) if self._on_scale or value is None else value
        place = None
        if self._criterion is not None and score is not None:
            place = self._criterion_name, normalize(score, self._criterion)
        if self._is_metric:
            outcome = "measured"
        elif found.success:
            outcome = "pass"
        else:
            outcome = "fail"
            failure = self._awaited and not found.decisive, reason or self._failed
        row = self._heads[outcome] + orjson.dumps(value) + self._tail
        counted = self._entry_name, self._kind, outcome, value
        return row, self._result(found, score), counted, place, failure

    def _score(self, found: EvaluationResult | Finding) -> Score | None:
        """The raw score of what brings none, as ``score_on_scale`` finds it."""
        if found.value is None or self._on_scale is None:
            return found.success if found.value is None else found.value
        return on_scale(found.value, self._on_scale, 0.0 if found.success else math.inf)

    def _result(self, found: EvaluationResult | Finding, score: Score | None) -> bytes:
        reason, metadata = found.reason, found.metadata
        result = {
            "criterionName": self._criterion_name,
            "score": score,
            "reasoning": reason,
            "evaluatorType": self._given_type,
            "metadata": metadata,
        }
        if not reason:
            del result["reasoning"]
        if not metadata:
            del result["metadata"]
        if isinstance(found, EvaluationResult):
            return strict_json_bytes(result)
        # What plugins say may be nested as deep as JSON may be: it is encoded as deep as it is in the line.
        return strict_json_bytes([[result]])[2:-2]


class _RowsByName(dict[str | None, _Rows | None]):
    """The rows of an entry by the criterion that a result of it names; none where nobody declared it."""

    def __init__(self, one: Resolved, declared: Mapping[str, EvaluationCriteria]) -> None:
        self._one = one
        self._declared = declared
        # By their identity, which is their own as long as they are kept.
        self._repeated: dict[int, tuple[RepeatedResult, Part]] = {}

    def __missing__(self, named: str | None) -> _Rows | None:
        name = named or (self._one.entry.key if self._one.entry.key in self._declared else None)
        criterion = self._declared.get(name) if name else None
        if name and criterion is None:
            return None
        rows = self[named] = _Rows(self._one, name, criterion)
        return rows

    def part(self, found: EvaluationResult | Finding) -> Part | None:
        """What a result adds to the line; nothing where it is not plain."""
        if type(found) is RepeatedResult and (kept := self._repeated.get(id(found))) is not None:
            return kept[1]
        rows = self[found.criterion_name]
        if rows is None or not _NOT_PLAIN.isdisjoint(found.metadata):
            return None
        part = rows.part(found)
        if type(found) is RepeatedResult:
            if len(self._repeated) >= _MOST_KEPT:
                self._repeated.clear()
            self._repeated[id(found)] = found, part
        return part


@dataclass(frozen=True, slots=True)
class _Scored:
    """What is the same for all records that were scored on the same criteria."""

    weights: Sequence[float] | None
    total: float
    coverage: bytes

    def overall(self, means: Mapping[str, float]) -> float | None:
        if self.weights is None:
            return None
        return math.fsum(map(operator.mul, means.values(), self.weights)) / self.total


class DirectResults:
    """Makes lines of what was found, for one runner and one dataset."""

    def __init__(self, runner: EvaluationRunner, dataset: str) -> None:
        self._criteria = runner.config.criteria
        self._declared = {criterion.name: criterion for criterion in self._criteria}
        self._entries = [_RowsByName(one, self._declared) for one in runner.resolved]
        self._measures = any(entry.kind == "metric" for entry in runner.entries)
        metadata = runner.config.metadata
        self._metadata = b"," + json_bytes({"metadata": metadata})[1:-1] if metadata else b""
        self._snapshot = b',"inputSnapshot":{"dataset":' + json_bytes(dataset) + b',"recordId":'
        self._scored: dict[tuple[str, ...], _Scored] = {}
        # By the identity of all results, which is their own as long as they are kept.
        self._kept: dict[tuple[int, ...], _Found] = {}
        # An entry that names a criterion nobody declared may be silent, which takes more to tell.
        self._every_name_declared = all(name in self._declared for _, name in runner.references)

    def result(
        self, record: Record, outcomes: Sequence[InlineOutcome], group: str | None
    ) -> DirectResult | None:
        """What a record came to; nothing where not all that was found is plain, or nothing was."""
        if record.facts.criteria is not self._criteria or not self._every_name_declared:
            return None
        try:
            found = self._kept.get(tuple(map(id, outcomes))) or self._found(outcomes)
            return self._put_together(record, found, group) if found is not None else None
        except (Excluded, orjson.JSONEncodeError, RecursionError):
            return None

    def _found(self, outcomes: Sequence[InlineOutcome]) -> _Found | None:
        parts = self._parts(outcomes)
        if not parts:
            return None
        rows, results, counted, places, failures = zip(*parts, strict=False)
        means = _means(places) if self._declared else _NO_NUMBERS
        metrics = _metrics(counted) if self._measures else _NO_NUMBERS
        scored = self._scored.get(names := tuple(means)) or self._scored_on(names)
        overall = scored.overall(means) if means else None
        outcome, reason = _verdict(counted, failures)
        pieces = (
            b',"overallScore":',
            b"null," if overall is None else orjson.dumps(overall) + b",",
            _VERDICTS[outcome],
            b',"reason":',
            orjson.dumps(reason),
            b',"evaluatorResults":[',
            b",".join(rows),
            b'],"results":[',
            b",".join(results),
            b'],"criterionScores":',
            orjson.dumps(means) if means else b"{}",
            b',"metrics":',
            orjson.dumps(metrics) if metrics else b"{}",
            scored.coverage,
        )
        found = b"".join(pieces), (outcome, overall, means, metrics, counted), outcomes
        if all(type(one) is RepeatedResult for one in outcomes):
            if len(self._kept) >= _MOST_COMBINED:
                self._kept.clear()
            self._kept[tuple(map(id, outcomes))] = found
        return found

    def _parts(self, outcomes: Sequence[InlineOutcome]) -> list[Part] | None:
        parts: list[Part] = []
        for entry, outcome in zip(self._entries, outcomes, strict=True):
            if isinstance(outcome, EvaluationResult):
                if (part := entry.part(outcome)) is None:
                    return None
                parts.append(part)
                continue
            for finding in outcome:
                if finding.error is not None or finding.skipped or (part := entry.part(finding)) is None:
                    return None
                parts.append(part)
        return parts

    def _put_together(self, record: Record, found: _Found, group: str | None) -> DirectResult:
        middle, counted, _ = found
        record_id, line = orjson.dumps(record.id), b"%d" % record.line
        usage, used = _usage(record)
        pieces = (
            b'{"recordId":',
            record_id,
            b',"line":',
            line,
            middle,
            b"%d" % int(time.time() * 1000),
            self._snapshot,
            record_id,
            b',"line":',
            line,
            b"}",
            _names(record),
            self._metadata,
            b',"usage":',
            used,
            b"}" if group is None else b',"group":' + orjson.dumps(group) + b"}",
        )
        return b"".join(pieces), (*counted, group, usage)

    def _scored_on(self, names: tuple[str, ...]) -> _Scored:
        weights = relative_weights(names, self._declared)
        missing = [name for name in self._declared if name not in names]
        coverage = Coverage(len(self._declared), len(names), missing)
        total = 0.0 if weights is None else math.fsum(weights)
        encoded = json_bytes({"coverage": coverage.to_json(), "runErrors": ()})
        scored = _Scored(weights, total, b"," + encoded[1:-1] + b',"timestamp":')
        if len(self._scored) < _MOST_KEPT:
            self._scored[names] = scored
        return scored


def _means(places: Sequence[Place | None]) -> dict[str, float]:
    """The mean of each criterion."""
    numbers: dict[str, list[float]] = {}
    for place in places:
        if place is not None:
            numbers.setdefault(place[0], []).append(place[1])
    return {name: of[0] if len(of) == 1 else math.fsum(of) / len(of) for name, of in numbers.items()}


def _metrics(rows: Sequence[EvaluatorRow]) -> dict[str, float]:
    return {name: value for name, kind, _, value in rows if kind == "metric" and value is not None}


def _verdict(rows: Sequence[EvaluatorRow], failures: Sequence[Failure | None]) -> tuple[str, str]:
    """The first failure is the reason; what might still have come later counts after all others."""
    later: str | None = None
    for failure in failures:
        if failure is not None:
            awaited, reason = failure
            if not awaited:
                return "fail", reason
            later = later or reason
    if later is not None:
        return "fail", later
    asserted = any(row[1] == "assertion" for row in rows)
    return ("pass", ALL_PASSED) if asserted else ("unasserted", NOTHING_ASSERTED)


def _names(record: Record) -> bytes:
    """The agent and the session of a record that has them."""
    if not record.agent_id and not record.session_id:
        return b""
    names = {"agentId": record.agent_id, "sessionId": record.session_id}
    return b"," + strict_json_bytes({key: name for key, name in names.items() if name})[1:-1]


def _usage(record: Record) -> tuple[Usage, bytes]:
    """What the agent says it used; who asks no model uses nothing."""
    tokens, cost = record.agent_tokens, record.facts.metadata.get("cost")
    if tokens is None and cost is None:
        return _NOTHING_USED
    usage = _NO_USAGE | {"agentTokens": tokens, "agentCost": read_cost(cost)}
    return usage, orjson.dumps(usage)
