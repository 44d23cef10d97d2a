"""Every example loads and runs as a user would run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.command_line import evalstudio
from tests.support.plugin_files import EXAMPLES, write_project

from evalstudio import ConnectorContext, Message, load_plugins, run_evaluators
from evalstudio.connectors.contract import ConnectorSettings, RunInfo
from evalstudio.project.config import read_config
from evalstudio.storage.json_lines import iter_results
from evalstudio.testing import context

CONFIGS = sorted(EXAMPLES.glob("*/evalstudio.config.json"))


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.parent.name)
def test_every_project_loads(config: Path) -> None:
    assert read_config(config).name == config.parent.name
    assert load_plugins(config).plugins


@pytest.mark.parametrize(
    ("response", "turn", "success", "skipped"),
    [
        ("Hello, how can I help?", 1, True, False),
        ("What do you want?", 1, False, False),
        ("", 1, False, False),
        ("This is the thing", 1, False, False),
        ("What else?", 2, True, True),
    ],
)
async def test_the_greeting_is_expected_in_the_first_reply(
    response: str, turn: int, success: bool, skipped: bool
) -> None:
    definition = load_plugins(EXAMPLES / "greeting" / "evalstudio.config.json").get_evaluator(
        "greeting-check"
    )
    assert definition is not None
    verdict = await run_evaluators([definition.use()], context(response, turn=turn).facts)
    (result,) = verdict.evaluator_results
    assert (result.success, result.skipped) == (success, skipped)


@pytest.mark.parametrize(
    ("wish", "success", "reason"),
    [
        ("2030-05-01 10:00 please", True, "1 offered, all free"),
        ("2030-05-01 11:00 please", False, "not free: 2030-05-01 11:00"),
        ("hello", True, "no slot was offered"),
    ],
)
async def test_the_booking_agents_claims_are_checked(wish: str, success: bool, reason: str) -> None:
    registry = load_plugins(EXAMPLES / "booking" / "evalstudio.config.json")
    connector, evaluator = (
        registry.get_connector("booking-agent"),
        registry.get_evaluator("availability-check"),
    )
    assert connector is not None
    assert evaluator is not None
    config = connector.config.parse("booking-agent", {"environment": "staging"})
    said = [Message(role="user", content=wish)]
    ctx = ConnectorContext(ConnectorSettings(config), said, said, RunInfo(id=f"run-{wish}"))
    answer = await connector(ctx)
    reply = Message.model_validate(answer.messages[0])
    verdict = await run_evaluators([evaluator.use()], context(reply).facts)
    (result,) = verdict.evaluator_results
    assert (result.success, result.reason) == (success, reason)
    assert connector.test_hook is not None
    assert "2.1.0" in await connector.test_hook(ctx)
    assert connector.state_hook is not None
    assert len((await connector.state_hook(ctx))["booked"]) == (0 if wish == "hello" else 1)


@pytest.fixture(scope="module")
def shouting_installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin package, built and installed by the real installer into a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    uv = Path(sys.executable).with_name("uv")
    command = [uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", sys.executable]
    subprocess.run([*command, "--target", target, EXAMPLES / "plugin-package"], check=True, timeout=120)
    return target


@pytest.mark.parametrize("plugins", [[], ["evalstudio-shouting"], ["evalstudio_shouting"]])
def test_the_installed_package_is_found(shouting_installed: Path, tmp_path: Path, plugins: list[str]) -> None:
    write_project(tmp_path, plugins)
    done = evalstudio("plugins", "list", "--json", cwd=tmp_path, PYTHONPATH=str(shouting_installed))
    assert done.returncode == 0, done.stderr
    (loaded,) = json.loads(done.stdout)
    assert loaded["evaluators"] == ["shouting"]
    assert loaded["path"].startswith(str(shouting_installed))


async def test_the_installed_package_evaluates(
    shouting_installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(shouting_installed))
    definition = load_plugins(write_project(tmp_path, [])).get_evaluator("shouting")
    assert definition is not None
    loud = await run_evaluators([definition.use()], context("STOP IT").facts)
    calm = await run_evaluators([definition.use(most=0.5)], context("Please stop").facts)
    assert (loud.outcome, calm.outcome) == ("fail", "pass")


def test_the_demo_tells_its_verdict() -> None:
    environment = {key: value for key, value in os.environ.items() if "KEY" not in key} | {"COLUMNS": "100"}
    command = [sys.executable, str(EXAMPLES / "demo.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Verdict: fail" in done.stdout
    assert "planted to fail" in done.stdout
    assert done.stdout.count("fails") == 1
    assert "error" not in done.stdout


def run_example(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The scoring example as a user without a key would run it."""
    environment = {key: value for key, value in os.environ.items() if "KEY" not in key} | {"COLUMNS": "110"}
    command = [sys.executable, str(EXAMPLES / "scoring" / "score_with_rules_and_judge.py"), *arguments]
    return subprocess.run(
        command, env=environment, cwd=cwd, capture_output=True, text=True, check=False, timeout=60
    )


class TestScoringWithRulesAndAJudge:
    def test_prints_every_record_and_appends_every_result(self, tmp_path: Path) -> None:
        for times in (1, 2):
            done = run_example("kept/results.jsonl", cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            assert "6 results appended to kept/results.jsonl" in done.stdout
            kept = list(iter_results(tmp_path / "kept" / "results.jsonl"))
            assert len(kept) == 6 * times
        assert all(result["coverage"]["scored"] == 3 for result in kept)
        found = {result["inputSnapshot"]["id"]: result for result in kept}
        assert found["return-1"]["outcome"] == "pass"
        assert found["refund-2"]["criterionScores"]["polite"] == 0.0
        assert found["size-1"]["criterionScores"] == {"complete": 0.0, "polite": 1.0, "helpful": 0.0}

    def test_the_table_shows_what_the_judge_said(self, tmp_path: Path) -> None:
        done = run_example(cwd=tmp_path)
        assert "Names label, box, 30 days." in done.stdout
        assert (tmp_path / "results.jsonl").exists()

    def test_the_plan_scores_the_records(self, tmp_path: Path) -> None:
        folder = EXAMPLES / "scoring"
        arguments = (
            "score",
            str(folder / "records.jsonl"),
            "-c",
            str(folder / "plan.yaml"),
            "-o",
            "out.jsonl",
        )
        done = evalstudio(*arguments, cwd=tmp_path)
        assert "6 records: overall 0.715 (4 pass, 2 fail, 0 error)" in done.stdout
        assert (done.returncode, done.stderr) == (1, '"polite" must be at least 0.9; it is 0.833.\n')
        assert len(list(iter_results(tmp_path / "out.jsonl", agent_id="support-2"))) == 6
