"""Runs in figures."""

from __future__ import annotations

from ...project.entities import Counts, Execution, Moment
from .base import Shape


class RateJson(Shape):
    """A share with what it rests on and its 95 % Wilson interval."""

    passed: int
    of: int
    rate: float | None
    low: float
    high: float


class Figures(Shape):
    """Runs in figures. An error is neither a pass nor a failure; runs without assertions are in no rate."""

    id: str | None
    name: str | None
    counts: Counts
    pass_rate_of_scored: RateJson
    pass_rate_of_attempted: RateJson
    mean_latency_ms: float | None
    max_latency_ms: float | None
    mean_score: float | None
    total_tokens: int | None


class ExecutionFigures(Figures):
    """An execution in figures, with the moment it was started."""

    created_at: Moment


class Cell(Shape):
    """A scenario in one execution."""

    execution_id: str
    counts: Counts


class MatrixRow(Shape):
    """A scenario across executions."""

    scenario_id: str | None
    scenario_name: str | None
    cells: list[Cell]


class Matrix(Shape):
    """Scenarios by executions, the newest execution first."""

    executions: list[Execution]
    rows: list[MatrixRow]
