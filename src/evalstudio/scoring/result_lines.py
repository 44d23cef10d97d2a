"""The lines of a results file, read by all that count them: what is no result is refused, never counted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast, get_args

from ..base.json_text import json_once
from ..evaluators.results import Outcome
from .summary import ASSERTION_OUTCOMES, METRIC_OUTCOMES

_OUTCOMES = get_args(Outcome)
_WORDS = {"assertion": ASSERTION_OUTCOMES, "metric": METRIC_OUTCOMES}


class BadResult(ValueError):
    """A line that is no result: its number in the file, and why; the file, where it is one of several."""

    def __init__(self, number: int, reason: str, file: str = "") -> None:
        super().__init__(f"{file}, line {number}: {reason}" if file else f"line {number}: {reason}")
        self.number = number
        self.reason = reason
        self.file = file


def read_result(line: bytes) -> dict[str, Any]:
    """One line as a result; ``ValueError`` says what is not as ``score`` writes it."""
    value: object = json_once(line)
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    result = cast(dict[str, Any], value)
    missing = [name for name in _FIELDS if name not in result]
    if missing:
        raise ValueError(f"it has no {', '.join(missing)}")
    if isinstance(result["line"], bool) or not isinstance(result["line"], int):
        raise ValueError("its line is no number")
    for name in ("recordId", "group"):
        if not isinstance(result.get(name, ""), str):
            raise ValueError(f"its {name} is no text")
    if result["outcome"] not in _OUTCOMES:
        raise ValueError(f'"{result["outcome"]}" is no outcome')
    if (overall := result.get("overallScore")) is not None:
        _check_number("overallScore", overall, most=1.0)
    _check_numbers(result, "criterionScores", most=1.0)
    _check_numbers(result, "metrics", least=-math.inf)
    _check_usage(result.get("usage"))
    _check_rows(result)
    return result


_FIELDS = ("recordId", "line", "outcome", "criterionScores", "metrics", "evaluatorResults", "results")


def _check_numbers(
    result: Mapping[str, Any], name: str, *, least: float = 0.0, most: float = math.inf
) -> None:
    if not isinstance(result[name], dict):
        raise ValueError(f"{name} is no object")
    for key, value in cast(dict[str, Any], result[name]).items():
        _check_number(f"{name}.{key}", value, least=least, most=most)


def _check_number(name: str, value: object, *, least: float = 0.0, most: float = math.inf) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is no number")
    # Sums of floats end a little beside the ends of a scale.
    if not least - 1e-6 <= value <= most + 1e-6:
        raise ValueError(f"{name} is {value:g}, outside {least:g}–{most:g}")


def _check_usage(usage: object) -> None:
    if not isinstance(usage, dict | None):
        raise ValueError("usage is no object")
    for name, value in cast(dict[str, Any], usage or {}).items():
        if value is not None:
            _check_number(f"usage.{name}", value)


def _check_rows(result: Mapping[str, Any]) -> None:
    """Each evaluator's row is one, and none of an assertion contradicts a pass."""
    if not isinstance(result["evaluatorResults"], list) or not isinstance(result["results"], list):
        raise ValueError("evaluatorResults and results must be lists")
    for row in cast(list[Any], result["evaluatorResults"]):
        kind, outcome = row["kind"], row["outcome"]
        if row["value"] is not None:
            _check_number(f"the value of {row['name']}", row["value"], least=-math.inf)
        if not isinstance(row["name"], str) or outcome not in _WORDS.get(kind, ()):
            raise ValueError(f'"{outcome}" is no outcome of an evaluator of kind "{kind}"')
        if result["outcome"] == "pass" and kind == "assertion" and outcome in ("fail", "error"):
            raise ValueError(f'it says "pass", but "{row["name"]}" came to "{outcome}"')
    for item in cast(list[Any], result["results"]):
        if "error" in item and not (
            isinstance(item["error"], str) and isinstance(item["criterionName"], str)
        ):
            raise ValueError("an error is no text")
