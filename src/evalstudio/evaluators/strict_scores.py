"""What a scale accepts from a judge or a person, exactly: in words, as a JSON Schema, and when it is read.

Scores that evaluators compute or that are imported are read leniently, by ``criteria.normalize``.
"""

from __future__ import annotations

from typing import Any

from ..base.json_text import json_text
from ..base.lazy_dataclass import dataclass
from ..base.text import cut
from .criteria import EvaluationCriteria, Score

_LONGEST_SHOWN = 60
_YES = frozenset({"true", "yes", "pass"})
_NO = frozenset({"false", "no", "fail"})


@dataclass(frozen=True, slots=True)
class YesOrNo:
    """True or false."""

    def __str__(self) -> str:
        return "true or false"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def takes(self, raw: object) -> bool:
        return isinstance(raw, bool)


@dataclass(frozen=True, slots=True)
class OneOf:
    """A word of a list, spelled as it stands there."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"one of: {', '.join(self.words)}"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}

    def takes(self, raw: object) -> bool:
        return isinstance(raw, str) and raw in self.words


@dataclass(frozen=True, slots=True)
class Within:
    """A number from one to another, both included."""

    low: float
    high: float
    whole: bool = False

    def __str__(self) -> str:
        if self.whole:
            return f"a whole number from {self.low:g} (worst) to {self.high:g} (best)"
        return f"a number from {self.low:g} to {self.high:g}"

    @property
    def schema(self) -> dict[str, Any]:
        kind = "integer" if self.whole else "number"
        return {"type": kind, "minimum": self.low, "maximum": self.high}

    def takes(self, raw: object) -> bool:
        if isinstance(raw, bool) or not isinstance(raw, int | float):
            return False
        return self.low <= raw <= self.high and (not self.whole or raw == int(raw))


def accepted(criterion: EvaluationCriteria) -> YesOrNo | OneOf | Within:
    """What counts as a score on a criterion's scale; its text is what a judge and a person are told."""
    match criterion.scale:
        case "binary" | "pass/fail":
            return YesOrNo()
        case "likert5":
            return Within(1, 5, whole=True)
        case scale if scale != "numeric" and criterion.labels:
            return OneOf(tuple(criterion.labels))
        case scale if scale == "numeric" or criterion.range:
            return Within(*(criterion.range or (0, 1)))
        case _:
            return OneOf(("pass", "fail"))


def read_score(raw: object, criterion: EvaluationCriteria) -> Score:
    """A judge's score, if it is exactly what its scale accepts; else ``ValueError`` with what that is."""
    form = accepted(criterion)
    if not form.takes(raw):
        shown = cut(json_text(raw), _LONGEST_SHOWN)
        raise ValueError(f"{shown} is not on the scale; answer {form}")
    assert isinstance(raw, bool | int | float | str)
    return int(raw) if isinstance(form, Within) and form.whole else raw


def read_mark(raw: object, criterion: EvaluationCriteria) -> Score:
    """A person's score: as a judge's; yes and no may also be written as words, the way tables keep them."""
    if isinstance(raw, str) and isinstance(accepted(criterion), YesOrNo):
        word = raw.casefold()
        return read_score(True if word in _YES else False if word in _NO else raw, criterion)
    return read_score(raw, criterion)
