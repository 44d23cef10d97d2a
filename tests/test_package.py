"""What ``import evalstudio`` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import evalstudio

PROMISED = {
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
}
HEAVY = {"pydantic", "orjson", "typer", "rich", "yaml", "jsonschema_rs"}


class TestThePackage:
    def test_has_every_name_it_promises(self) -> None:
        assert set(evalstudio.__all__) == PROMISED | {"__version__"}
        for name in evalstudio.__all__:
            assert getattr(evalstudio, name) is not None
        assert set(evalstudio.__all__) <= set(dir(evalstudio))

    def test_has_no_other_names(self) -> None:
        with pytest.raises(AttributeError, match="no attribute 'nope'"):
            evalstudio.nope  # noqa: B018  # pyright: ignore

    def test_imports_nothing_heavy(self) -> None:
        code = f"import sys, evalstudio; print(sorted({HEAVY} & set(sys.modules)))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"

    def test_knows_all_types_without_an_http_client(self) -> None:
        types = "registry.list_connector_types(), registry.list_evaluator_types()"
        made = "import sys, evalstudio; registry = evalstudio.create_registry()"
        code = f"{made}; {types}; print('aiohttp' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "False"
