"""The workflow and the hooks are well-formed, and hold what the project promises."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from evalstudio.version import __version__

WORKFLOW = Path(".github/workflows/test.yml")


def test_the_workflow_fits_the_schema_of_its_host() -> None:
    checked = subprocess.run(
        [
            sys.executable,
            "-m",
            "check_jsonschema",
            "--builtin-schema",
            "vendor.github-workflows",
            str(WORKFLOW),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_workflow_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yml"
    broken.write_text(WORKFLOW.read_text().replace("runs-on:", "runs-at:"))
    checked = subprocess.run(
        [
            sys.executable,
            "-m",
            "check_jsonschema",
            "--builtin-schema",
            "vendor.github-workflows",
            str(broken),
        ],
        capture_output=True,
        check=False,
    )
    assert checked.returncode == 1


def test_every_python_from_the_oldest_on_is_tested_with_make_test() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    versions = jobs["test"]["strategy"]["matrix"]["python"]
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    oldest = tomllib.loads(Path("pyproject.toml").read_text())["project"]["requires-python"]
    assert oldest == f">={versions[0]}"
    commands = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    assert commands == {"test": ["make test"], "coverage": ["make coverage"], "mutants": ["make mutants"]}


def test_actions_are_pinned_by_their_major_version() -> None:
    actions = re.findall(r"uses: (\S+)", WORKFLOW.read_text())
    assert actions
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", action) for action in actions)


def test_hooks_are_local_and_run_what_is_installed() -> None:
    (repo,) = yaml.safe_load(Path(".pre-commit-config.yaml").read_text())["repos"]
    assert repo["repo"] == "local"
    assert {hook["language"] for hook in repo["hooks"]} == {"system"}
    subprocess.run([sys.executable, "-m", "pre_commit", "validate-config"], check=True, capture_output=True)


@pytest.mark.parametrize("command", ["coverage", "hooks", "mutants"])
def test_make_knows_the_commands_that_are_named(command: str) -> None:
    assert re.search(rf"^{command}:.*## ", Path("Makefile").read_text(), re.MULTILINE)


def test_the_version_has_its_part_of_the_changelog() -> None:
    versions = re.findall(r"^## (\S+)", Path("CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == __version__
