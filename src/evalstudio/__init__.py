"""EvalStudio: is the agent good enough, and did the last change make it better or worse?

The names plugin authors and library users need. Each is imported on first use, so that importing the
package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .base.problems import InvalidInput, Problem
    from .client import Client
    from .connectors.contract import (
        ConnectorContext,
        ConnectorDefinition,
        ConnectorError,
        ConnectorResponse,
        define_connector,
    )
    from .conversation.definitions import Persona, Scenario
    from .conversation.library import run_scenario, run_scenario_sync
    from .conversation.results import RunResult
    from .evaluators.aggregate import run_evaluators
    from .evaluators.contract import EvaluationResult, EvaluatorContext
    from .evaluators.criteria import Coverage, EvaluationCriteria
    from .evaluators.definition import EvaluatorDefinition, define_evaluator
    from .evaluators.records import CriterionResult, EvaluationInput
    from .evaluators.results import Finding, Turn, Verdict
    from .execution.review_library import review_conversation, review_conversation_sync
    from .messages import ContentBlock, Message, TokensUsage, ToolCall, text_of
    from .plugins import Plugin, PluginError, PluginRegistry, create_registry, load_plugins
    from .recordings.conversation import RecordedConversation
    from .scoring.config import EvaluationRunConfig
    from .scoring.runner import (
        AggregatedEvaluationResult,
        EvaluationRunner,
        EvaluationStorageProvider,
        run_evaluation,
        run_evaluation_sync,
    )
    from .storage.json_lines import JsonFileStorageProvider

_NAMES = {
    "base.problems": "InvalidInput Problem",
    "client": "Client",
    "connectors.contract": "ConnectorContext ConnectorDefinition ConnectorError ConnectorResponse "
    "define_connector",
    "conversation.definitions": "Persona Scenario",
    "conversation.library": "run_scenario run_scenario_sync",
    "conversation.results": "RunResult",
    "evaluators.aggregate": "run_evaluators",
    "evaluators.contract": "EvaluationResult EvaluatorContext",
    "evaluators.criteria": "Coverage EvaluationCriteria",
    "evaluators.definition": "EvaluatorDefinition define_evaluator",
    "evaluators.records": "CriterionResult EvaluationInput",
    "evaluators.results": "Finding Turn Verdict",
    "execution.review_library": "review_conversation review_conversation_sync",
    "messages": "ContentBlock Message TokensUsage ToolCall text_of",
    "plugins": "Plugin PluginError PluginRegistry create_registry load_plugins",
    "recordings.conversation": "RecordedConversation",
    "scoring.config": "EvaluationRunConfig",
    "scoring.runner": "AggregatedEvaluationResult EvaluationRunner EvaluationStorageProvider "
    "run_evaluation run_evaluation_sync",
    "storage.json_lines": "JsonFileStorageProvider",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "AggregatedEvaluationResult",
    "Client",
    "ConnectorContext",
    "ConnectorDefinition",
    "ConnectorError",
    "ConnectorResponse",
    "ContentBlock",
    "Coverage",
    "CriterionResult",
    "EvaluationCriteria",
    "EvaluationInput",
    "EvaluationResult",
    "EvaluationRunConfig",
    "EvaluationRunner",
    "EvaluationStorageProvider",
    "EvaluatorContext",
    "EvaluatorDefinition",
    "Finding",
    "InvalidInput",
    "JsonFileStorageProvider",
    "Message",
    "Persona",
    "Plugin",
    "PluginError",
    "PluginRegistry",
    "Problem",
    "RecordedConversation",
    "RunResult",
    "Scenario",
    "TokensUsage",
    "ToolCall",
    "Turn",
    "Verdict",
    "__version__",
    "create_registry",
    "define_connector",
    "define_evaluator",
    "load_plugins",
    "review_conversation",
    "review_conversation_sync",
    "run_evaluation",
    "run_evaluation_sync",
    "run_evaluators",
    "run_scenario",
    "run_scenario_sync",
    "text_of",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
