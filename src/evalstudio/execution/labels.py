"""Labels that an execution gets by itself: the commit, the branch, and where the CI ran.

They are read where the command runs. A label that somebody gave wins.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_GIT_SECONDS = 5.0
# Which variables of which CI hold what; the first that is set counts.
_COMMIT = ("GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILD_SOURCEVERSION")
_BRANCH = (
    "GITHUB_HEAD_REF",
    "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME",
    "CI_COMMIT_BRANCH",
    "CHANGE_BRANCH",
    "BRANCH_NAME",
    "GIT_BRANCH",
)
_PULL_REQUEST = ("CI_MERGE_REQUEST_IID", "CHANGE_ID", "PULL_REQUEST_NUMBER")
_RUN = ("GITHUB_RUN_ID", "CI_PIPELINE_ID", "BUILD_ID")
_URL = ("CI_JOB_URL", "BUILD_URL")


def automatic_labels(folder: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What git and the CI say of the state of a project; nothing where there is neither."""
    of_ci, of_git = _of_ci(environ), _of_git(folder)
    labels = of_ci | of_git
    if of_ci and not of_git.get("branch"):
        # CI checks out a commit without its branch: only the CI knows the branch.
        labels["branch"] = _ci_branch(environ)
    return {key: value for key, value in labels.items() if value}


async def with_automatic_labels(labels: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The labels with what git and the CI say here, unless they name the commit of another place."""
    if "commit" in labels:
        return labels
    return {**await asyncio.to_thread(automatic_labels, folder), **labels}


def _of_ci(environ: Mapping[str, str]) -> dict[str, str]:
    if "GITHUB_ACTIONS" in environ:
        name = "github"
    elif "GITLAB_CI" in environ:
        name = "gitlab"
    elif environ.get("CI", "").lower() in ("", "0", "false"):
        return {}
    else:
        name = "ci"
    return {
        "ci": name,
        "commit": _first(environ, _COMMIT),
        "pullRequest": _first(environ, _PULL_REQUEST) or _github_pull_request(environ),
        "ciRun": _first(environ, _RUN),
        "ciUrl": _first(environ, _URL) or _github_url(environ),
    }


def _ci_branch(environ: Mapping[str, str]) -> str:
    branch = _first(environ, _BRANCH)
    if not branch and environ.get("GITHUB_REF_TYPE") == "branch":
        branch = environ.get("GITHUB_REF_NAME", "")
    return branch.removeprefix("origin/")


def _github_pull_request(environ: Mapping[str, str]) -> str:
    """The number in refs/pull/12/merge."""
    parts = environ.get("GITHUB_REF", "").split("/")
    return parts[2] if parts[:2] == ["refs", "pull"] and len(parts) > 2 else ""


def _github_url(environ: Mapping[str, str]) -> str:
    parts = [environ.get(name, "") for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")]
    return f"{parts[0]}/{parts[1]}/actions/runs/{parts[2]}" if all(parts) else ""


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := environ.get(name, "").strip())), "")


def _of_git(folder: Path) -> dict[str, str]:
    """Commit, branch and dirtiness of the repository that the folder is in. Files that git does not know are
    not looked at: results are among them."""
    if not any((place / ".git").exists() for place in (folder, *folder.parents)):
        return {}
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return {}
    labels = {"commit": commit, "branch": _git(folder, "symbolic-ref", "--short", "--quiet", "HEAD") or ""}
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return labels if changes is None else labels | {"dirty": "true" if changes else "false"}


def _git(folder: Path, *arguments: str) -> str | None:
    """What git answers; nothing where there is no git, it refuses, or it takes too long."""
    # A file monitor or a hook of the repository is a program of its own: none of them is started.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None
