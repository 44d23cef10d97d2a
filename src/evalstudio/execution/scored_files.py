"""A results file of ``evalstudio score`` in a project folder: what it comes to, and its records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from ..base.problems import InvalidInput
from ..evaluators.results import Outcome
from ..project.validation import inside
from ..reporting.recorded import summary_json
from ..reporting.statistics import Figure
from ..scoring.result_lines import BadResult
from ..scoring.stored_results import each_result
from ..scoring.summary import DatasetSummary

MOST_BYTES = 100_000_000
MOST_RECORDS = 200


class RecordReason(Figure):
    """What was said of a record by one criterion."""

    criterion: str | None
    evaluator: str
    value: float | None = Field(description="From 0 to 1")
    reason: str
    error: bool


class ScoredRecord(Figure):
    """One record with its verdict and the reasons for it."""

    record_id: str
    outcome: Outcome
    overall_score: float | None
    reason: str
    reasons: list[RecordReason]


class ScoredFile(Figure):
    """What a results file comes to, and its first records."""

    path: str
    summary: dict[str, Any] = Field(description="As `evalstudio score --json` prints it")
    records: list[ScoredRecord]
    more_records: int


def results_path(folder: Path, name: str) -> Path:
    """A results file inside the project folder that is small enough to be read at once."""
    path = inside(folder, name)
    try:
        size = path.stat().st_size
    except OSError as error:
        raise InvalidInput(f'"{name}": cannot be read: {error.strerror}') from None
    if size > MOST_BYTES:
        limit = MOST_BYTES // 1_000_000
        raise InvalidInput(f'"{name}" is larger than {limit} MB; use evalstudio report or compare instead')
    return path


def read_results(
    folder: Path, name: str, outcome: Outcome | None = None, record: str | None = None
) -> ScoredFile:
    """Its summary over all records, and the first that came to this outcome or have this id."""
    path, summary = results_path(folder, name), DatasetSummary()
    records: list[ScoredRecord] = []
    matching = 0
    try:
        for place, result in each_result(path):
            summary.add(result)
            summary.duplicates.add(str(result["recordId"]), place)
            if outcome in (None, result["outcome"]) and record in (None, str(result["recordId"])):
                matching += 1
                if len(records) < MOST_RECORDS:
                    records.append(_record(result))
    except BadResult as error:
        raise unreadable(name, error) from None
    return ScoredFile(
        path=name, summary=summary_json(summary), records=records, more_records=matching - len(records)
    )


def unreadable(name: str, error: BadResult) -> InvalidInput:
    """That a file is no results file, with the line that is none."""
    return InvalidInput(
        f"{name}, line {error.number}: is not a result of evalstudio score ({error.reason}); "
        "a file that is still being written, or torn, is mended by score --resume"
    )


def _record(result: Mapping[str, Any]) -> ScoredRecord:
    return ScoredRecord(
        record_id=str(result["recordId"]),
        outcome=result["outcome"],
        overall_score=result.get("overallScore"),
        reason=str(result.get("reason") or ""),
        reasons=[_reason(item, result["criterionScores"]) for item in result["results"]],
    )


def _reason(item: Mapping[str, Any], scores: Mapping[str, float]) -> RecordReason:
    criterion = item.get("criterionName")
    return RecordReason(
        criterion=criterion,
        evaluator=str(item.get("evaluatorType") or ""),
        value=scores.get(criterion) if criterion is not None else None,
        reason=str(item.get("error") or item.get("reasoning") or ""),
        error="error" in item,
    )
