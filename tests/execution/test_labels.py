"""Labels by themselves: from a real repository, and from the variables of a CI."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evalstudio.execution import labels
from evalstudio.execution.labels import automatic_labels

GITHUB = {
    "CI": "true",
    "GITHUB_ACTIONS": "true",
    "GITHUB_SHA": "c" * 40,
    "GITHUB_REF": "refs/heads/main",
    "GITHUB_REF_TYPE": "branch",
    "GITHUB_REF_NAME": "main",
    "GITHUB_RUN_ID": "77",
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "a/b",
}


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *who, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "agent.py").write_text("one")
    git(tmp_path, "add", "agent.py")
    git(tmp_path, "commit", "-q", "-m", "one")
    return tmp_path


def test_a_repository_gives_commit_branch_and_dirtiness(repository: Path) -> None:
    below = repository / "studio"
    below.mkdir()
    (below / "results.jsonl").write_text("not known to git")
    commit = git(repository, "rev-parse", "HEAD")
    assert automatic_labels(below, {}) == {"commit": commit, "branch": "main", "dirty": "false"}
    (repository / "agent.py").write_text("two")
    assert automatic_labels(below, {})["dirty"] == "true"


def test_outside_a_repository_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("git was called"))
    assert automatic_labels(tmp_path, {}) == {}


@pytest.mark.parametrize("trouble", [FileNotFoundError(), subprocess.TimeoutExpired("git", 1)])
def test_a_git_that_is_missing_or_hangs_costs_only_the_labels(
    repository: Path, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise trouble

    monkeypatch.setattr(labels.subprocess, "run", refuse)
    assert automatic_labels(repository, {}) == {}


def test_a_repository_without_a_commit_or_that_is_broken_has_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert automatic_labels(tmp_path, {}) == {}
    (tmp_path / ".git" / "HEAD").write_text("nonsense")
    assert automatic_labels(tmp_path, {}) == {}


def test_a_checkout_without_a_branch_takes_the_branch_of_the_ci(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    assert "branch" not in automatic_labels(repository, {})
    known = automatic_labels(repository, GITHUB)
    assert (known["branch"], known["ci"], known["commit"]) == (
        "main",
        "github",
        git(repository, "rev-parse", "HEAD"),
    )


def test_github_says_where_it_ran(tmp_path: Path) -> None:
    assert automatic_labels(tmp_path, GITHUB) == {
        "ci": "github",
        "commit": "c" * 40,
        "branch": "main",
        "ciRun": "77",
        "ciUrl": "https://github.com/a/b/actions/runs/77",
    }


def test_a_pull_request_is_told_from_the_branch_it_is_named_after(tmp_path: Path) -> None:
    request = GITHUB | {
        "GITHUB_REF": "refs/pull/12/merge",
        "GITHUB_HEAD_REF": "main",
        "GITHUB_REF_NAME": "12/merge",
    }
    known = automatic_labels(tmp_path, request)
    assert (known["branch"], known["pullRequest"]) == ("main", "12")


def test_a_tag_is_no_branch(tmp_path: Path) -> None:
    assert "branch" not in automatic_labels(
        tmp_path, GITHUB | {"GITHUB_REF_TYPE": "tag", "GITHUB_REF_NAME": "v1"}
    )


def test_gitlab_and_others(tmp_path: Path) -> None:
    gitlab = {"CI": "true", "GITLAB_CI": "true", "CI_COMMIT_SHA": "d", "CI_COMMIT_BRANCH": "main"}
    assert automatic_labels(tmp_path, gitlab) == {"ci": "gitlab", "commit": "d", "branch": "main"}
    merge = gitlab | {"CI_MERGE_REQUEST_IID": "3", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "x"}
    assert automatic_labels(tmp_path, merge)["pullRequest"] == "3"
    assert automatic_labels(tmp_path, {"CI": "1", "GIT_COMMIT": "e", "GIT_BRANCH": "origin/main"}) == {
        "ci": "ci",
        "commit": "e",
        "branch": "main",
    }
    assert automatic_labels(tmp_path, {"CI": "false", "GIT_COMMIT": "e"}) == {}
