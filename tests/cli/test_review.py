"""``evalstudio review``, ``rescore`` and ``scenario from`` in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import evalstudio

SCENARIO = {
    "name": "booking",
    "script": ["Book a table"],
    "evaluators": [{"type": "regex", "config": {"pattern": "Booked"}}],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "evalstudio.config.json").write_text('{"name": "t"}')
    (tmp_path / "scenarios.json").write_text(json.dumps({"scenarios": [SCENARIO]}))
    assert evalstudio("apply", "scenarios.json", cwd=tmp_path).returncode == 0
    return tmp_path


def chat(answer: str, **fields: Any) -> str:
    said = [{"role": "user", "content": "Book a table"}, {"role": "assistant", "content": answer}]
    return json.dumps({"messages": said, **fields})


def review(folder: Path, *lines: str, options: tuple[str, ...] = ()) -> Any:
    (folder / "chats.jsonl").write_text("\n".join(lines))
    return evalstudio("review", "chats.jsonl", "--scenario", "booking", *options, cwd=folder)


def test_repeated_tasks_give_pass_hat_k_in_one_command(folder: Path) -> None:
    lines = [
        chat("Booked.", id=f"{task}{trial}", taskId=task, trial=trial) for task in "ab" for trial in (0, 1)
    ]
    done = review(folder, *lines, options=("--require", "passHatK=0.2,k=2"))
    assert done.returncode == 0, done.stderr
    assert "pass^2 is 100% over 2 subjects" in done.stdout
    assert "recorded conversations" in done.stdout


@pytest.mark.parametrize(
    ("lines", "options", "code", "says"),
    [
        ([chat("Sorry.")], (), 1, "no match"),
        ([chat("Booked."), "{broken"], (), 3, "chats.jsonl:2: is not valid JSON"),
        ([chat("Booked."), "{broken"], ("--skip-bad",), 0, "chats.jsonl:2: is not valid JSON"),
        (["{broken"], (), 2, "not one of 1 conversations"),
        ([chat("Booked.")], ("--eval", "x"), 2, "one of them"),
        ([chat("Booked.")], ("--fields", "messages"), 2, "TARGET=PATH"),
        ([chat("Booked.")], ("--resume", "none"), 2, "none"),
    ],
)
def test_the_exit_code_says_what_it_came_to(
    folder: Path, lines: list[str], options: tuple[str, ...], code: int, says: str
) -> None:
    done = review(folder, *lines, options=options)
    assert says in done.stdout + done.stderr
    assert done.returncode == code


def test_an_execution_is_scored_again_and_a_run_becomes_a_scenario(folder: Path) -> None:
    assert review(folder, chat("Booked.", id="a")).returncode == 0
    (folder / "plan.yaml").write_text("evaluators: [{type: regex, config: {pattern: Sorry}}]\n")
    again = evalstudio("rescore", "last", "--evaluators", "plan.yaml", cwd=folder)
    assert again.returncode == 1, again.stderr
    assert "scored again" in again.stdout
    assert "regressed" in again.stdout
    drafted = evalstudio("scenario", "from", "last", "--name", "regression", "-o", "draft.yaml", cwd=folder)
    assert drafted.returncode == 0, drafted.stderr
    assert evalstudio("apply", "draft.yaml", cwd=folder).returncode == 0
