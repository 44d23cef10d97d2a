"""What an execution runs with: our version, the models, the judge's prompts and the code of every type used.

It is kept as hashes beside the execution, so that a comparison can say what has changed since.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..connectors.contract import ConnectorDefinition
from ..conversation.definitions import EvaluatorUse, Scenario
from ..evaluators.builtin import prompts
from ..evaluators.definition import EvaluatorDefinition
from ..llm.settings import LlmSettings, ModelError, Role, find_target
from ..project.entities import StoredConnector
from ..storage.contract import Snapshot
from ..version import __version__
from .workspace import Workspace

if TYPE_CHECKING:
    from ..reporting.comparison import Change, Part

_MODEL_OF: dict[Role, Part] = {
    "evaluation": "judge model",
    "persona": "simulator model",
    "embedding": "embedding model",
}
_MOST_FILES = 2000


def environment_snapshot(
    workspace: Workspace, scenarios: Iterable[Scenario], connectors: Iterable[StoredConnector]
) -> Snapshot:
    """What these scenarios and connectors would run with now."""
    return Snapshot.of(environment_data(workspace, scenarios, connectors))


def environment_data(
    workspace: Workspace, scenarios: Iterable[Scenario], connectors: Iterable[StoredConnector] = ()
) -> dict[str, Any]:
    """The same as data."""
    registry = workspace.registry
    types = {one for scenario in scenarios for one in evaluator_types(scenario)}
    types |= {definition.type for definition in registry.auto_evaluators()}
    evaluators = {one: _code(registry.get_evaluator(one)) for one in sorted(types)}
    agents = {one: _code(registry.get_connector(one)) for one in sorted({each.type for each in connectors})}
    return {
        "version": __version__,
        "models": _models(workspace.config.llm_settings),
        "judgePrompts": _hash_of(prompts.__file__),
        "evaluators": evaluators,
        "connectors": agents,
    }


def evaluator_types(scenario: Scenario) -> Iterator[str]:
    for entry in scenario.evaluators:
        yield entry.type if isinstance(entry, EvaluatorUse) else entry.definition.type
    if scenario.success_criteria or scenario.failure_criteria:
        yield "llm-judge"


def _models(settings: LlmSettings | None) -> dict[str, str]:
    models: dict[str, str] = {}
    if settings is None:
        return models
    for role in get_args(Role):
        with suppress(ModelError):
            target = find_target(settings, None, role)
            models[role] = f"{target.provider}:{target.model}"
    return models


def _code(definition: EvaluatorDefinition | ConnectorDefinition | None) -> dict[str, str | None]:
    """The version of where a type comes from, and a hash of its source."""
    if definition is None:
        return {"version": None, "code": None}
    module = sys.modules.get(definition.module) or sys.modules.get(definition.function.__module__)
    return {"version": _version(definition), "code": _hash_of(getattr(module, "__file__", None))}


def _version(definition: EvaluatorDefinition | ConnectorDefinition) -> str | None:
    if definition.module.startswith("evalstudio."):
        return __version__
    with suppress(metadata.PackageNotFoundError, ValueError):
        return metadata.version(definition.plugin or definition.module.partition(".")[0])
    return None


def _hash_of(file: str | None) -> str | None:
    """The source of a module; of a package every module in it, because one may use the others."""
    if not file:
        return None
    path = Path(file)
    in_package = path.name == "__init__.py"
    files = sorted(path.parent.rglob("*.py"))[:_MOST_FILES] if in_package else [path]
    digest = hashlib.sha256()
    for one in files:
        with suppress(OSError):
            digest.update(one.read_bytes())
    return digest.hexdigest()[:40]


def environment_changes(base: Mapping[str, Any] | None, candidate: Mapping[str, Any] | None) -> list[Change]:
    """What differs between the environments of two executions."""
    if base is None or candidate is None:
        return []
    changes = [_change("version", base.get("version"), candidate.get("version"))]
    for role, what in _MODEL_OF.items():
        changes.append(_change(what, *(side.get("models", {}).get(role) for side in (base, candidate))))
    changes.append(_change("judge prompts", base.get("judgePrompts"), candidate.get("judgePrompts")))
    changes += _code_changes("evaluators", "evaluator code", base, candidate)
    changes += _code_changes("connectors", "connector code", base, candidate)
    return [change for change in changes if change.base != change.candidate]


def _code_changes(
    field: Literal["evaluators", "connectors"],
    what: Part,
    base: Mapping[str, Any],
    candidate: Mapping[str, Any],
) -> Iterator[Change]:
    """Types that both sides used; one that only one side used is a change of the scenario or connector."""
    before, after = base.get(field, {}), candidate.get(field, {})
    for name in sorted(before.keys() & after.keys()):
        yield _change(what, before[name].get("code"), after[name].get("code"), name)


def _change(what: Part, base: str | None, candidate: str | None, name: str | None = None) -> Change:
    from ..reporting.comparison import Change

    return Change(what=what, name=name, base=base, candidate=candidate)
