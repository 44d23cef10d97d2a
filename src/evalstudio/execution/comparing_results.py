"""Comparing two results files of ``score``, record by record."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..base.problems import InvalidInput
from ..base.text import counted
from ..project.validation import inside
from ..reporting.comparing import compare
from ..reporting.comparison import ComparedSide, ComparisonResult
from ..reporting.comparison_rows import ComparedRow, ComparisonTable, MeasureKey, Parts, SideName
from ..reporting.paired import ALPHA
from ..scoring.result_lines import BadResult
from ..scoring.stored_results import ResultsPlace, each_result, note_at, written_at
from ..scoring.summary import Duplicates
from .scored_files import results_path, unreadable


def compare_results(
    base: ResultsPlace,
    candidate: ResultsPlace,
    *,
    alpha: float = ALPHA,
    min_effect: float = 0.0,
    allow_gone: bool = False,
) -> ComparisonResult:
    """Compare the records that two results files, or folders of results, have in common, by their ids."""
    table, notes = ComparisonTable(), list[str]()
    plans: dict[SideName, str | None] = {}
    places: dict[SideName, ResultsPlace] = {"base": base, "candidate": candidate}
    for side, place in places.items():
        plans[side] = note_at(place).get("plan")
    if None in plans.values():
        # The plan is what the records were asked: where it is not known it is not held against either.
        notes.append("nothing says whether both files were scored by the same plan: a .job.json is missing")
        plans = {"base": None, "candidate": None}
    for side, place in places.items():
        repeated = _read(table, side, place, Parts(evaluators=plans[side]))
        if repeated.count:
            records = counted(repeated.count, "record")
            notes.append(
                f"{records} of the {side} with the id of an earlier one: {', '.join(repeated.examples)}"
            )
    return compare(
        table,
        _side(base),
        _side(candidate),
        notes=notes,
        alpha=alpha,
        min_effect=min_effect,
        allow_gone=allow_gone,
    )


def name_results_files(folder: Path, *names: str) -> bool:
    """Whether all of these are files in the project folder: no execution or baseline is meant then."""
    return all(_is_file(folder, name) for name in names)


def _is_file(folder: Path, name: str) -> bool:
    try:
        # A name that is too long for a file is none; Path.is_file would raise.
        return os.path.isfile(inside(folder, name))
    except InvalidInput:
        return False


def compare_files(
    folder: Path,
    base: str,
    candidate: str,
    *,
    alpha: float = ALPHA,
    min_effect: float = 0.0,
    allow_gone: bool = False,
) -> ComparisonResult:
    """Compare two results files of a project, each named by its path in it."""
    paths = results_path(folder, base), results_path(folder, candidate)
    # Paths are reported relative to the project folder.
    try:
        result = compare_results(*paths, alpha=alpha, min_effect=min_effect, allow_gone=allow_gone)
    except InvalidInput as error:
        raise InvalidInput(str(error).replace(f"{folder.resolve()}/", "")) from None
    sides = {
        "base": result.base.model_copy(update={"id": base}),
        "candidate": result.candidate.model_copy(update={"id": candidate}),
    }
    return result.model_copy(update=sides)


def _side(place: ResultsPlace) -> ComparedSide:
    partial = note_at(place).get("partial")
    return ComparedSide(id=str(place), created_at=written_at(place), is_results_file=True, partial=partial)


def _read(table: ComparisonTable, side: SideName, place: ResultsPlace, parts: Parts) -> Duplicates:
    repeated = Duplicates()
    try:
        for number, result in each_result(place):
            record_id = str(result["recordId"])
            names = (None, record_id, None, None, None, None, None)
            row = ComparedRow(record_id, names, result["outcome"], parts, measures=list(_measures(result)))
            table.add(side, row)
            repeated.add(record_id, number)
    except BadResult as error:
        raise unreadable(f"{place}{error.file}", error) from None
    except OSError as error:
        raise InvalidInput(f"{place}: cannot be read: {error.strerror}") from None
    return repeated


def _measures(result: Mapping[str, Any]) -> Iterator[tuple[MeasureKey, float]]:
    if (overall := result.get("overallScore")) is not None:
        yield ("score", "overall score"), float(overall)
    for name, value in result["criterionScores"].items():
        yield ("criterion", name), float(value)
    for name, value in result["metrics"].items():
        yield ("metric", name), float(value)
    for row in result["evaluatorResults"]:
        if row["kind"] == "assertion" and row["outcome"] in ("pass", "fail"):
            yield ("evaluator", row["name"]), float(row["outcome"] == "pass")
