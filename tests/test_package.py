"""What ``import evalstudio`` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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

    def test_runs_an_agent_that_is_a_function_without_an_http_client(self, tmp_path: Path) -> None:
        code = (
            "import sys, os; os.chdir(sys.argv[1])\n"
            "from evalstudio.cli import main\n"
            "for words in (['init', '.'], ['eval', 'run']):\n"
            "    sys.argv = ['evalstudio', *words]\n"
            "    try: main()\n"
            "    except SystemExit as end: assert not end.code, end.code\n"
            "print('LOADED', [name for name in ('aiohttp', 'rich.progress') if name in sys.modules])\n"
            "print('TYPES', 'evalstudio.evaluators.builtin.tool_usage' in sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-2:] == ["LOADED []", "TYPES False"]
