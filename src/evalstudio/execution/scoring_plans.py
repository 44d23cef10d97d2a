"""A scoring plan as it is being written: its settings, its text, and what is wrong with it, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field

from ..base.files import mapping_of, parse_text
from ..base.problems import InvalidInput, Problem, path_text
from ..llm.client import Llm
from ..project.validation import inside
from ..project.yaml_text import to_yaml
from ..reporting.statistics import Figure
from ..scoring.job import checked_runner
from ..scoring.plan import plan_of_text, read_plan
from .project_files import OWN_FOLDER, plan_text
from .workspace import Workspace

PLAN_NAME = "plan.yaml"
# Code, and addresses that keys are sent to, come from the project's own files.
_FOR_FILES = {
    "plugins": "the project's plugins are loaded for every plan",
    "llmSettings": "judges ask the models of the project's config file",
}


class PlanProblem(Figure):
    """One thing that is wrong with a plan."""

    path: str = Field(description="Of the setting", examples=["evaluators[0].config.pattern"])
    message: str
    hint: str = ""
    line: int | None = Field(default=None, description="In the text")


class PlanCheck(Figure):
    """A plan as text and as settings, with what is wrong with it."""

    text: str
    plan: dict[str, Any] | None = Field(description="Its settings; null where the text cannot be read")
    problems: list[PlanProblem]


class PlanFile(PlanCheck):
    """A plan of the project as its file has it."""

    path: str
    masked: bool = Field(
        description="Whether a provider's key in it is masked: it is scored by as a file only"
    )


def read_plan_file(workspace: Workspace, name: str) -> PlanFile:
    """A plan of the project with its settings, and what is wrong with it where it stands."""
    path, text, masked = plan_text(workspace.folder, name)
    problems: list[Problem] = []
    try:
        plan, plan_files = read_plan(path)
        if not plan.plugins:
            llm = workspace.llm or (Llm(plan.llm_settings) if plan.llm_settings else None)
            checked_runner(plan, plan_files, workspace.registry, llm)
    except InvalidInput as error:
        problems = error.problems
    settings = mapping_of(parse_text(text, path.name, is_json=path.suffix.lower() == ".json"), path.name).data
    shown = [_shown(one, workspace.folder, str(path)) for one in problems]
    return PlanFile(path=name, text=text, masked=masked, plan=settings, problems=shown)


def check_plan(
    workspace: Workspace, *, text: str | None = None, plan: dict[str, Any] | None = None
) -> PlanCheck:
    """Check a plan that is given as text, or as settings that become text."""
    written = text if text is not None else to_yaml(plan or {})
    settings = plan
    problems: list[Problem] = []
    try:
        settings = mapping_of(parse_text(written, PLAN_NAME, is_json=False), PLAN_NAME).data
        check_written(workspace, written)
    except InvalidInput as error:
        problems = error.problems
    shown = [_shown(one, workspace.folder, PLAN_NAME) for one in problems]
    return PlanCheck(text=written, plan=settings, problems=shown)


def check_written(workspace: Workspace, text: str) -> None:
    """Refuse a plan from elsewhere than a file of the project that could not be scored by, or should not."""
    folder = workspace.folder

    def may_extend(path: Path) -> bool:
        try:
            return not inside(folder, str(path)).is_relative_to(folder.resolve() / OWN_FOLDER)
        except InvalidInput:
            return False

    located = mapping_of(parse_text(text, PLAN_NAME, is_json=False), PLAN_NAME)
    if refused := [*_only_in_files(located.data)]:
        raise InvalidInput(*map(located.placed, refused))
    plan, plan_files = plan_of_text(text, folder / PLAN_NAME, may_extend)
    if not plan.plugins:
        checked_runner(plan, plan_files, workspace.registry, workspace.llm)


def _only_in_files(settings: dict[str, Any]) -> Iterator[Problem]:
    for name, instead in _FOR_FILES.items():
        if settings.get(name):
            hint = f"{instead}; or keep the plan in a file of the project folder"
            yield Problem("cannot be set here", (name,), hint)


def _shown(problem: Problem, folder: Path, own: str) -> PlanProblem:
    place = re.fullmatch(rf"{re.escape(own)}(?::(\d+))?(?::\d+)?", problem.place)
    elsewhere = "" if place or not problem.place else f"{problem.place}: "
    message = f"{elsewhere}{problem.message}".replace(f"{folder.resolve()}/", "").replace(f"{folder}/", "")
    line = int(place[1]) if place and place[1] else None
    return PlanProblem(path=path_text(problem.path), message=message, hint=problem.hint, line=line)
