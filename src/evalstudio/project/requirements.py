"""What an eval requires of an execution, and what it may spend; how both are written in files and commands.

``reporting/requirements.py`` says whether they are met.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from ..base.addresses import shown_address
from ..base.files import read_file, single_data
from ..base.problems import InvalidInput, problems_of
from ..base.text import percent
from ..conversation.definitions import Definition
from ..evaluators.criteria import not_blank

RequirementKind = Literal[
    "passRate", "passHatK", "noRegression", "metric", "criterion", "maxErrors", "maxFlaky", "minCoverage"
]
_KINDS: tuple[RequirementKind, ...] = (
    "passRate",
    "passHatK",
    "noRegression",
    "maxErrors",
    "maxFlaky",
    "minCoverage",
    "metric",
    "criterion",
)
_COVERAGE: tuple[RequirementKind] = ("minCoverage",)
_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*", re.ASCII)


def _is_amount(value: int | str) -> int | str:
    if isinstance(value, str):
        share = _SHARE.fullmatch(value)
        if share is None or float(share[1]) > 100:
            raise ValueError(f'"{value}" is neither a whole number nor a share such as "2%"')
    return value


def as_share(amount: str) -> float:
    """A share that is written in percent."""
    return float(amount.strip(" %")) / 100


def _is_number(value: object) -> object:
    if isinstance(value, bool | str):
        raise ValueError(f"{value!r} is no number; write one without quotes, such as 0.9 for 90%")
    return value


def _asks_something(share: float) -> float:
    if share == 0:
        raise ValueError("0 is always reached, so it requires nothing; give a larger share")
    return share


_AS_WRITTEN = BeforeValidator(_is_number)
Number = Annotated[float, _AS_WRITTEN]
Share = Annotated[float, Field(ge=0, le=1), _AS_WRITTEN]
LeastShare = Annotated[float, Field(ge=0, le=1), AfterValidator(_asks_something), _AS_WRITTEN]
Name = Annotated[str, Field(min_length=1), AfterValidator(not_blank)]
Amount = Annotated[
    Annotated[int, Field(ge=0, strict=True)] | str,
    Field(union_mode="left_to_right"),
    AfterValidator(_is_amount),
]


class Requirement(Definition):
    """One thing that an execution must reach. Exactly one of the kinds is given; the rest says more of it."""

    pass_rate: LeastShare | None = Field(default=None, description="The least share of scored runs that pass")
    pass_hat_k: LeastShare | None = Field(
        default=None, description="The least share of subjects that pass k times in a row (pass^k)"
    )
    no_regression: Name | None = Field(
        default=None, description="The baseline or execution that it must not be worse than"
    )
    max_errors: Amount | None = Field(default=None, description='The most errored runs: 3, or "2%" of them')
    max_flaky: Amount | None = Field(
        default=None, description='The most flaky subjects: 3, or "2%" of those that ran more than once'
    )
    min_coverage: LeastShare | None = Field(
        default=None, description="The least share of runs that passed or failed; of a criterion: were scored"
    )
    metric: Name | None = Field(
        default=None,
        description="A metric by name, or latencyMs, totalTokens, turns; its mean unless percentile is given",
    )
    criterion: Name | None = Field(default=None, description="The criterion whose mean is held")
    k: Annotated[int, Field(ge=1, le=1000), _AS_WRITTEN] | None = Field(
        default=None, description="How many runs in a row, for passHatK"
    )
    percentile: Annotated[float, Field(gt=0, lt=100), _AS_WRITTEN] | None = Field(
        default=None, description="95 is the 95th, for metric"
    )
    min: Number | None = Field(default=None, description="The least value, for metric and criterion")
    max: Number | None = Field(default=None, description="The greatest value, for metric and criterion")
    min_effect: Share | None = Field(
        default=None, description="The smallest drop that counts, for noRegression; any, if not given"
    )
    alpha: Annotated[float, Field(gt=0, lt=0.5), _AS_WRITTEN] | None = Field(
        default=None, description="How often noRegression may be wrong by chance; usually 0.05"
    )
    allow_gone: bool | None = Field(
        default=None, description="Whether subjects of the baseline may be missing, for noRegression"
    )
    scenario: Name | None = Field(default=None, description="Only this scenario")
    tag: Name | None = Field(default=None, description="Only scenarios with this tag")
    confidence: Annotated[float, Field(gt=0.5, lt=1), _AS_WRITTEN] | None = Field(
        default=None, description="Hold the interval's bound at this confidence, not the point"
    )

    @property
    def kind(self) -> RequirementKind:
        values = {field: getattr(self, name) for name, field in _FIELDS.items()}
        return next(kind for kind in _KINDS if values[kind] is not None)

    @property
    def text(self) -> str:
        """As it is written on the command line."""
        values = self.model_dump(by_alias=True, exclude_none=True)
        if self.no_regression is not None:
            values["noRegression"] = _shown(self.no_regression)
        first = self.kind
        ordered = [first, *(name for name in values if name != first)]
        return ",".join(f"{name}{_operator(name)}{_plain(values[name])}" for name in ordered)

    @property
    def sentence(self) -> str:
        """What it requires, for people who do not type it: ``pass rate at least 90%, of "Refund"``."""
        parts = [_SENTENCES[self.kind](self)]
        parts += [f'of "{self.scenario}"'] if self.scenario else []
        parts += [f'of scenarios tagged "{self.tag}"'] if self.tag else []
        parts += [f"at {percent(self.confidence)} confidence"] if self.confidence else []
        return ", ".join(parts)

    @model_validator(mode="after")
    def _one_kind(self) -> Requirement:
        values = {field: getattr(self, name) for name, field in _FIELDS.items()}
        kinds: list[RequirementKind] = [kind for kind in _KINDS if values[kind] is not None]
        if set(kinds) == {"minCoverage", "criterion"}:
            kinds = list(_COVERAGE)
        if len(kinds) != 1:
            stated = f"gives {' and '.join(kinds)}" if kinds else "gives none"
            raise ValueError(f"a requirement is one of {', '.join(_KINDS)}; this one {stated}")
        for field, needed in _BELONGS.items():
            if getattr(self, field) is not None and kinds[0] not in needed:
                raise ValueError(f"{_FIELDS[field]} belongs to {' and '.join(needed)}, not to {kinds[0]}")
        _check_bounds(self, kinds[0])
        return self


_FIELDS = {name: field.alias or name for name, field in Requirement.model_fields.items()}
_MEASURED: tuple[RequirementKind, ...] = ("metric", "criterion")
_SURE: tuple[RequirementKind, ...] = ("passRate", "passHatK", "noRegression", "metric", "criterion")
_BELONGS: dict[str, tuple[RequirementKind, ...]] = {
    "k": ("passHatK",),
    "percentile": ("metric",),
    "min": _MEASURED,
    "max": _MEASURED,
    "min_effect": ("noRegression",),
    "alpha": ("noRegression",),
    "allow_gone": ("noRegression",),
    "confidence": _SURE,
}


def _check_bounds(requirement: Requirement, kind: RequirementKind) -> None:
    if kind == "passHatK" and requirement.k is None:
        raise ValueError("passHatK needs k: how many runs in a row must pass")
    if kind in _MEASURED:
        low, high = requirement.min, requirement.max
        if low is None and high is None:
            raise ValueError(f"{kind} needs min or max: what is required of it")
        if low is not None and high is not None and low > high:
            raise ValueError(f"min {low:g} is more than max {high:g}")
    if kind == "criterion":
        _check_on_scale(requirement)


def _check_on_scale(requirement: Requirement) -> None:
    """Scores of criteria are compared from 0 to 1, whatever their scale."""
    for name, bound in (("min", requirement.min), ("max", requirement.max)):
        if bound is not None and not 0 <= bound <= 1:
            raise ValueError(f"{name} {bound:g} is outside 0–1, where the means of all criteria lie")
    if requirement.min == 0 and requirement.max in (None, 1):
        raise ValueError(
            "min 0 is always reached, so it requires nothing; give a larger one, or a max below 1"
        )
    if requirement.max == 1 and requirement.min is None:
        raise ValueError("max 1 is always kept, so it requires nothing; give a smaller one, or a min")


def _bounded(one: Requirement) -> str:
    what = f'mean of "{one.metric or one.criterion}"'
    if one.percentile is not None:
        what = f'{one.percentile:g}th percentile of "{one.metric}"'
    least = [] if one.min is None else [f"at least {one.min:,g}"]
    return f"{what} {' and '.join(least if one.max is None else [*least, f'at most {one.max:,g}'])}"


def _not_worse(one: Requirement) -> str:
    effect = f", drops below {percent(one.min_effect)} do not count" if one.min_effect else ""
    gone = ", subjects of it may be missing" if one.allow_gone else ""
    return f'no regression against "{_shown(one.no_regression or "")}"{effect}{gone}'


def _shown(baseline: str) -> str:
    """Earlier results may be at an address, and that may hold a key."""
    return shown_address(baseline) if "://" in baseline else baseline


def _covered(one: Requirement) -> str:
    of = "" if one.criterion is None else f' of "{one.criterion}"'
    return f"coverage{of} at least {percent(one.min_coverage or 0.0)}"


_SENTENCES: dict[RequirementKind, Callable[[Requirement], str]] = {
    "passRate": lambda one: f"pass rate at least {percent(one.pass_rate or 0.0)}",
    "passHatK": lambda one: (
        f"pass^{one.k}, all of {one.k} runs passed, for at least {percent(one.pass_hat_k or 0.0)} of subjects"
    ),
    "noRegression": _not_worse,
    "maxErrors": lambda one: f"errors at most {one.max_errors}",
    "maxFlaky": lambda one: f"flaky subjects at most {one.max_flaky}",
    "minCoverage": _covered,
    "metric": _bounded,
    "criterion": _bounded,
}


class Budget(Definition):
    """What an execution may use. What is spent when a limit is reached is kept, and marked as partial."""

    max_cost: float | None = Field(default=None, gt=0, description="US dollars, of all roles, where known")
    max_tokens: int | None = Field(default=None, ge=1, description="Tokens of agent, simulator and judge")
    max_time: float | None = Field(default=None, gt=0, description="Seconds from its start")

    @property
    def unlimited(self) -> bool:
        return self.max_cost is None and self.max_tokens is None and self.max_time is None


def stored_requirement(fields: Mapping[str, Any]) -> Requirement:
    """A requirement as an execution kept it: one that is refused by now is shown as it was."""
    try:
        return Requirement.model_validate(fields)
    except ValidationError:
        names = {alias: name for name, alias in _FIELDS.items()}
        return Requirement.model_construct(
            None, **{names[key]: fields[key] for key in fields if key in names}
        )


def read_budget(max_cost: float | None, max_tokens: int | None, max_time: float | None) -> Budget | None:
    """The budget that a command gives, if it gives any."""
    try:
        limits = {"maxCost": max_cost, "maxTokens": max_tokens, "maxTime": max_time}
        budget = Budget.model_validate(limits)
    except ValidationError as error:
        raise InvalidInput(*problems_of(error)) from None
    return None if budget.unlimited else budget


_AT_LEAST = {"passRate", "passHatK", "minCoverage", "min"}
_AT_MOST = {"maxErrors", "maxFlaky", "max"}
_PART = re.compile(r"\s*([A-Za-z]+)\s*(>=|<=|=)\s*(.*?)\s*", re.DOTALL)
# A comma ends a part only where another field follows: names may hold commas.
_SPLIT = re.compile(r",(?=\s*(?:" + "|".join(_FIELDS.values()) + r")\s*(?:>=|<=|=))")
_REQUIREMENTS = TypeAdapter(list[Requirement])
_EXAMPLE = "passRate>=0.9, or passRate>=0.9,scenario=Refund,confidence=0.95"


def _operator(name: str) -> str:
    return ">=" if name in _AT_LEAST else "<=" if name in _AT_MOST else "="


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def read_requirements(options: Iterable[str]) -> list[Requirement]:
    """What ``--require`` gives: requirements as text, or files that hold a list of them."""
    requirements: list[Requirement] = []
    for option in options:
        requirements += [read_requirement(option)] if _PART.match(option) else _from_file(Path(option))
    return requirements


def read_requirement(text: str) -> Requirement:
    """A requirement as ``passRate>=0.9,scenario=Refund``: the fields that files have, in any order."""
    fields: dict[str, Any] = {}
    for part in _SPLIT.split(text):
        match = _PART.fullmatch(part)
        if match is None:
            raise InvalidInput(f'--require "{text}": "{part}" is not FIELD=VALUE; write {_EXAMPLE}')
        name, operator, value = match.groups()
        if name not in _FIELDS.values():
            raise InvalidInput(f'--require "{text}": there is no "{name}"; there are {", ".join(_KINDS)}')
        if operator not in ("=", _operator(name)):
            raise InvalidInput(f'--require "{text}": {name} is written {name}{_operator(name)}{value}')
        if name in fields:
            raise InvalidInput(f'--require "{text}": {name} is given twice')
        fields[name] = _read_value(name, value)
    return _parsed([fields], f'--require "{text}"')[0]


def _read_value(name: str, value: str) -> object:
    if name in ("scenario", "tag", "metric", "criterion", "noRegression"):
        return value
    if value in ("true", "false"):
        return value == "true"
    try:
        return int(value) if value.isdecimal() else float(value)
    except ValueError:
        return value


def _from_file(path: Path) -> list[Requirement]:
    if not path.is_file():
        raise InvalidInput(f'--require "{path}" is neither a requirement nor a file; write {_EXAMPLE}')
    content: Any = single_data(read_file(path))
    if isinstance(content, dict):
        content = cast(dict[str, Any], content).get("requirements")
    if not isinstance(content, list):
        raise InvalidInput.at(
            path, 'holds no list of requirements; write "requirements:" and a list under it'
        )
    return _parsed(cast(list[Any], content), str(path))


def _parsed(content: list[Any], source: str) -> list[Requirement]:
    try:
        return _REQUIREMENTS.validate_python(content)
    except ValidationError as error:
        problems = "; ".join(str(problem) for problem in problems_of(error))
        raise InvalidInput(f"{source}: {problems}") from None
