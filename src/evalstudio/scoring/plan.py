"""Scoring plans: criteria, evaluators, field mapping and thresholds in a YAML or JSON file.

A plan may extend others: criteria and evaluators of the same name are replaced, new ones added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import AliasChoices, ConfigDict, Field, ValidationError, field_validator

from ..base.addresses import shown_address
from ..base.files import mapping_of, parse_text, read_mapping
from ..base.lazy_dataclass import dataclass
from ..base.located import Located
from ..base.problems import FieldPath, InvalidInput, Problem, ProblemList, problems_of, suggestion
from ..configs import StrictConfig
from ..evaluators.criteria import EvaluationCriteria, Name
from ..evaluators.limits import DEFAULT_LIMITS, EvaluatorLimits
from ..evaluators.records import EvaluationInput
from ..llm.settings import LlmSettings
from ..plugins.loading import is_path, path_of
from .config import Criteria, EvaluationRunConfig, Names

EVALUATORS = ("evaluators", "evaluatorConfigs")
_TARGETS = [field.alias or name for name, field in EvaluationInput.model_fields.items() if name != "criteria"]


def _both_spellings(schema: dict[str, Any]) -> None:
    """Editors are told of the older name too, and of the line that leads them here."""
    first, older = EVALUATORS
    schema["properties"] |= {older: schema["properties"][first], "$schema": {"type": "string"}}


Share = Annotated[float, Field(ge=0, le=1)]


class PlannedEvaluator(StrictConfig):
    """One evaluator of a plan."""

    model_config = ConfigDict(extra="allow")

    type: Name = Field(description="A built-in type or a plugin's")
    name: str | None = Field(
        None, description="Its name in results; names the criterion it scores, if there is one"
    )
    config: dict[str, Any] = Field(default_factory=dict[str, Any], description="Settings of this type")


class ScoringPlan(StrictConfig):
    """How to score a dataset."""

    model_config = ConfigDict(json_schema_extra=_both_spellings)

    extends: Names = Field(default_factory=list[str], description="Plans to build on, relative to this file")
    criteria: Criteria = Field(default_factory=list[EvaluationCriteria])
    evaluators: list[PlannedEvaluator] = Field(
        default_factory=list[PlannedEvaluator], validation_alias=AliasChoices(*EVALUATORS)
    )
    fields: dict[str, str] = Field(
        default_factory=dict[str, str], description="Where each field of a record is found in a row"
    )
    thresholds: dict[str, Share] = Field(
        default_factory=dict[str, Share], description="Lowest acceptable mean per criterion, 0–1"
    )
    fail_under: Share | None = Field(None, description="Lowest acceptable overall score, 0–1")
    group_by: str | None = Field(
        None, min_length=1, description="Summarise by agentId, sessionId or a field of the records' metadata"
    )
    only: Names = Field(default_factory=list[str], description="Run only these types, kinds or costs")
    skip: Names = Field(default_factory=list[str], description="Leave out these types, kinds or costs")
    concurrency: int = Field(8, ge=1, description="Records waiting for a model at once")
    llm_settings: LlmSettings | None = Field(
        None, description="The model provider, for evaluators that need one"
    )
    limits: EvaluatorLimits = Field(DEFAULT_LIMITS, description="How much evaluators look at, and how long")
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])
    plugins: list[str] = Field(default_factory=list[str], description="Plugins, relative to this file")

    @field_validator("fields")
    @classmethod
    def _known_targets(cls, value: dict[str, str]) -> dict[str, str]:
        for target in value:
            if target.partition(".")[0] not in _TARGETS:
                raise ValueError(f'"{target}" is not a field of a record; known are {", ".join(_TARGETS)}')
        return value

    def run_config(self, only: list[str] | None = None) -> EvaluationRunConfig:
        entries = [entry.model_dump(by_alias=True, exclude_unset=True) for entry in self.evaluators]
        return EvaluationRunConfig(
            evaluator_configs=entries,
            criteria=self.criteria,
            metadata=self.metadata,
            only=only or self.only,
            skip=self.skip,
            concurrency=self.concurrency,
        )


@dataclass(frozen=True, slots=True)
class PlanFiles:
    """A plan's settings with everything it extends, and the files they come from, its own first."""

    settings: dict[str, Any]
    files: list[Located]

    def placed(self, error: InvalidInput) -> InvalidInput:
        """What is wrong with the plan, in the spelling of its files, with the file and line of each."""
        return InvalidInput(*map(self._placed, error.problems))

    def _placed(self, problem: Problem) -> Problem:
        path = problem.path
        if path and path[0] in EVALUATORS:
            path = (next((name for name in EVALUATORS if name in self.settings), path[0]), *path[1:])
        return replace(problem, path=path, place=self._place(path))

    def _place(self, path: FieldPath) -> str:
        if len(path) > 1 and path[0] in _ADD_UP:
            # Lists of several files are joined: an entry stands in the file that holds it.
            entry = cast(Any, self.settings)[path[0]][path[1]]
            for file in self.files:
                for at in file.lines:
                    if len(at) == 2 and at[0] in _ADD_UP and file.part(at).data is entry:
                        return file.at(at + path[2:])
        return next((file.at(path) for file in self.files if path[:1] in file.lines), self.files[0].at())


def load_plan(path: Path) -> ScoringPlan:
    """A plan from its file, with everything it extends."""
    return read_plan(path)[0]


def read_plan(path: Path) -> tuple[ScoringPlan, PlanFiles]:
    """A plan, and the files that tell where each part of it was written."""
    plan_files = _read_extended(path)
    return _checked(plan_files), plan_files


def plan_of_text(text: str, path: Path, may_extend: Callable[[Path], bool]) -> tuple[ScoringPlan, PlanFiles]:
    """A plan that is not in a file yet, as if it stood at a path. It extends only what it may."""
    plan_files = _extended(
        mapping_of(parse_text(text, path.name, is_json=False), path.name), path, may_extend
    )
    return _checked(plan_files), plan_files


def _checked(plan_files: PlanFiles) -> ScoringPlan:
    problems = ProblemList()
    try:
        plan = ScoringPlan.model_validate(plan_files.settings)
    except ValidationError as error:
        problems += problems_of(error, plan_files.settings, ScoringPlan)
    else:
        if not plan.evaluators:
            problems.append(Problem("at least one evaluator is needed", ("evaluators",)))
        known = [criterion.name for criterion in plan.criteria]
        problems += [
            Problem(f'no criterion is named "{name}"', ("thresholds", name), suggestion(name, known))
            for name in plan.thresholds
            if name not in known
        ]
        if not problems:
            return plan
    raise plan_files.placed(InvalidInput(*problems))


_ADD_UP = frozenset({"criteria", "plugins", *EVALUATORS})


def _read_extended(path: Path, seen: tuple[Path, ...] = ()) -> PlanFiles:
    """What a plan's file says, on top of what the plans it extends say."""
    resolved = path.resolve()
    if resolved in seen:
        chain = " → ".join(one.name for one in (*seen, resolved))
        raise InvalidInput.at(path, f"extends itself, through {chain}")
    return _extended(read_mapping(path), path, lambda _: True, (*seen, resolved))


def _extended(
    located: Located, path: Path, may_extend: Callable[[Path], bool], seen: tuple[Path, ...] = ()
) -> PlanFiles:
    merged: dict[str, Any] = {}
    files = [located]
    for base in _bases(located, path.parent, may_extend):
        inner = _read_extended(path.parent / base, seen)
        merged = _merge(merged, inner.settings)
        files += inner.files
    own = {key: item for key, item in located.data.items() if key not in ("extends", "$schema")}
    return PlanFiles(_merge(merged, _absolute_plugins(own, path.resolve())), files)


def _bases(located: Located, folder: Path, may_extend: Callable[[Path], bool]) -> list[str]:
    bases: Any = located.data.get("extends") or []
    names = cast(list[Any], bases if isinstance(bases, list) else [bases])
    problems = ProblemList()
    if not all(isinstance(name, str) for name in names):
        problems.append(Problem("expected a path or a list of paths", ("extends",)))
    elif barred := [name for name in names if not may_extend(folder / name)]:
        hint = "extend a plan inside the project folder"
        problems += [
            Problem(f'"{name}" may not be extended from here', ("extends",), hint) for name in barred
        ]
    else:
        gone = [folder / name for name in names if not (folder / name).exists()]
        problems += [Problem(f"{path} does not exist", ("extends",)) for path in gone]
    ProblemList(map(located.placed, problems)).check()
    return names


def _absolute_plugins(raw: dict[str, Any], path: Path) -> dict[str, Any]:
    """Plugins stay relative to the file that names them."""
    if isinstance(raw.get("plugins"), list):
        raw["plugins"] = [
            str(path_of(item, path.parent)) if isinstance(item, str) and is_path(item) else item
            for item in raw["plugins"]
        ]
    return raw


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Named things add up by name, settings inside settings one by one; anything else is replaced."""
    spelled = next((name for name in EVALUATORS if name in over), None)
    merged = {spelled if spelled and key in EVALUATORS else key: item for key, item in base.items()}
    for key, value in over.items():
        known = merged.get(key)
        if key in _ADD_UP and isinstance(known, list) and isinstance(value, list):
            merged[key] = _added(cast(list[Any], known), cast(list[Any], value))
        else:
            merged[key] = _replaced(known, value)
    return merged


def _replaced(base: Any, over: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    known, changes = cast(dict[str, Any], base), cast(dict[str, Any], over)
    return known | {key: _replaced(known.get(key), value) for key, value in changes.items()}


def _added(base: list[Any], over: list[Any]) -> list[Any]:
    """Things of the same name are replaced where they stand, the others come after."""
    items, names, new = list(base), [_name(item) for item in base], list[Any]()
    for item in over:
        name = _name(item)
        if name is not None and name in names:
            place = names.index(name)
            # Each is replaced once: a name given twice must still be found out.
            items[place], names[place] = item, None
        else:
            new.append(item)
    return items + new


def _name(item: Any) -> str | None:
    """What a thing is known by in its list: a plugin by itself, the others by their names."""
    name: object = cast(dict[str, Any], item).get("name") if isinstance(item, dict) else item
    return name if isinstance(name, str) else None


@dataclass(frozen=True, slots=True)
class ScoringJob:
    """One scoring of a dataset: which records are scored, with what, and where the results go."""

    dataset: Path
    plan_path: Path
    output: Path | None = None
    only: list[str] = field(default_factory=list[str])
    limit: int | None = None
    share: float = 1.0
    seed: str = "0"
    skip_bad: bool = False
    resume: bool = False
    workers: int | None = 1
    """How many processes score; None for as many as pay."""
    config_path: Path | None = None
    group_by: str | None = None
    retry_errors: bool = False
    llm_settings: LlmSettings | None = None
    """The project's models, for a plan that names none."""
    address: str | None = None
    """Where the dataset is, if not on a path: ``s3://bucket/records.jsonl``."""

    output_address: str | None = None
    """Where the results go in shards, if not to a path: ``s3://bucket/results/``."""

    @property
    def dataset_name(self) -> str:
        """As it may be shown."""
        return str(self.dataset) if self.address is None else shown_address(self.address)
