"""With --json, stdout is JSON and nothing else, whatever agents, evaluators, plugins and children print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import evalstudio

NOISY = """
import os
import subprocess
import sys
import threading

from evalstudio import ConnectorContext, EvaluatorContext, define_connector, define_evaluator

print("plugin imported")
os.write(1, b"plugin wrote\\n")


def noise(who):
    print(who, "printed")
    sys.stdout.buffer.write(f"{who} bytes\\n".encode())
    sys.__stdout__.write(f"{who} escaped\\n")
    os.write(1, f"{who} wrote\\n".encode())
    subprocess.run(["echo", f"{who} child"], stdout=sys.stdout)
    subprocess.run(["echo", f"{who} child"])
    thread = threading.Thread(target=print, args=(f"{who} thread",))
    thread.start()
    thread.join()


@define_connector(type="noisy")
def noisy(ctx: ConnectorContext) -> str:
    noise("agent")
    return "done"


@define_evaluator(type="loud")
def loud(ctx: EvaluatorContext) -> bool:
    noise("evaluator")
    return True


@define_evaluator(type="loud-inline", inline=True)
def loud_inline(ctx: EvaluatorContext) -> bool:
    noise("inline")
    return True
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "noisy.py").write_text(NOISY)
    (tmp_path / "evalstudio.config.json").write_text(json.dumps({"name": "t", "plugins": ["./noisy.py"]}))
    evaluators = [{"type": "loud"}, {"type": "loud-inline"}]
    definitions = {
        "connectors": [{"name": "agent", "type": "noisy"}],
        "scenarios": [{"name": "s", "script": ["Hi"], "evaluators": evaluators}],
        "evals": [{"name": "all", "scenarios": ["s"], "connectors": ["agent"]}],
    }
    (tmp_path / "evals.json").write_text(json.dumps(definitions))
    assert evalstudio("apply", "evals.json", cwd=tmp_path).returncode == 0
    return tmp_path


def json_of(project: Path, *arguments: str) -> Any:
    done = evalstudio(*arguments, "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_an_eval_and_the_log_of_its_run(project: Path) -> None:
    assert json_of(project, "eval", "run")["execution"]["counts"]["passed"] == 1
    run = json_of(project, "run", "show", "last")
    for who in ("agent", "evaluator", "inline"):
        assert f"{who} printed\n{who} bytes\n" in run["output"]["log"]
    shown = evalstudio("run", "show", "last", cwd=project).stdout
    assert "\nLog\n" in shown
    assert "agent printed" in shown


def test_testing_a_connector(project: Path) -> None:
    assert json_of(project, "connector", "test", "agent")["success"]


def test_scoring_records(project: Path) -> None:
    (project / "data.jsonl").write_text('{"response": "x"}\n')
    (project / "plan.json").write_text(json.dumps({"evaluatorConfigs": [{"type": "loud"}]}))
    assert json_of(project, "score", "data.jsonl", "--plan", "plan.json")["records"] == 1


def test_listing_types(project: Path) -> None:
    assert any(item["type"] == "loud" for item in json_of(project, "evaluators", "list"))
