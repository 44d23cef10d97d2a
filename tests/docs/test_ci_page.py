"""The jobs of the page "In CI", tried with plain git and bash: a broken agent turns them red, by name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.command_line import warm_command_folder
from tests.support.plugin_files import REPOSITORY
from tests.support.snippets import blocks_of, quiet_environment

FILES = {
    block.file: block.text
    for block in blocks_of((REPOSITORY / "docs/ci.md").read_text(encoding="utf-8"))
    if block.file
}


def _steps(job: str) -> str:
    """The shell steps of a job, without what installs and what calls a host."""
    if job == "ci.sh":
        return FILES[job]
    content: Any = yaml.safe_load(FILES[job])["jobs" if job == "workflow.yml" else "evals"]
    lines = content["script"] if job == "gitlab.yml" else _runs(content["evals"]["steps"])
    return "\n".join(["set -e", *(line for line in lines if "pip install" not in line)])


def _runs(steps: list[dict[str, Any]]) -> list[str]:
    return [line for step in steps if step.get("name") == "Evaluate" for line in step["run"].splitlines()]


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    origin = tmp_path / "origin"
    for name in ("evals/agent.yaml", "agent.py", "evalstudio.config.json"):
        (origin / name).parent.mkdir(parents=True, exist_ok=True)
        (origin / name).write_text(FILES[name])
    (origin / ".gitignore").write_text("data/\n*.xml\n*.html\ncomment.md\n")
    _git(origin, "init", "-q", "-b", "main")
    _git(origin, "add", "-A")
    _git(origin, "commit", "-qm", "Add the shop")
    return origin


def _job(repository: Path, folder: Path, branch: str, job: str) -> subprocess.CompletedProcess[str]:
    """What a runner does: clone the branch, then run the steps."""
    _git(repository, "clone", "-q", "-b", branch, str(repository), str(folder))
    path = f"{warm_command_folder()}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = quiet_environment(PATH=path, GITHUB_HEAD_REF=branch)
    return subprocess.run(
        ["bash", "-c", _steps(job)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("job", ["workflow.yml", "gitlab.yml", "ci.sh"])
def test_a_change_that_breaks_the_agent_turns_the_job_red(repository: Path, tmp_path: Path, job: str) -> None:
    agent = repository / "agent.py"
    _git(repository, "checkout", "-qb", "broken")
    agent.write_text(agent.read_text().replace("refund is", "money stays"))
    _git(repository, "commit", "-qam", "Keep the money")
    _git(repository, "checkout", "-q", "main")
    _git(repository, "checkout", "-qb", "harmless")
    agent.write_text(agent.read_text().replace("Hello, how", "Hello! How"))
    _git(repository, "commit", "-qam", "Greet with more joy")

    red = _job(repository, tmp_path / "red", "broken", job)
    assert red.returncode == 1, red.stdout + red.stderr
    green = _job(repository, tmp_path / "green", "harmless", job)
    assert green.returncode == 0, green.stdout + green.stderr
    assert "<failure" in (tmp_path / "red/results.xml").read_text()
    if job != "gitlab.yml":
        comment = (tmp_path / "red/comment.md").read_text()
        assert comment.startswith("### ❌ nightly: 2 of 4 requirements missed")
        assert "**Refund · shop** (0 of 3 passed)" in comment
        assert "Greeting" not in comment.partition("<details>")[0]
        assert "✅ nightly" in (tmp_path / "green/comment.md").read_text()


def test_the_workflow_of_the_page_fits_the_schema_of_its_host(tmp_path: Path) -> None:
    path = tmp_path / "evals.yml"
    path.write_text(FILES["workflow.yml"])
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.github-workflows",
        str(path),
    ]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
