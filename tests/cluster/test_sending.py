"""What a command sends to the workers of a cluster."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.scoring_files import Folder

from evalstudio.base.problems import InvalidInput
from evalstudio.cluster import scoring
from evalstudio.cluster.connection import Cluster
from evalstudio.scoring.plan import ScoringJob

ELSEWHERE = Cluster(SimpleNamespace(), is_local=False)


@pytest.fixture
def job(tmp_path: Path) -> ScoringJob:
    folder = Folder(tmp_path / "project")
    folder.path.mkdir()
    config = {"allowedVariables": ["REGION"], "plugins": ["./tone.py"]}
    (folder.path / "evalstudio.config.json").write_text(json.dumps(config))
    folder.plan({"evaluators": [{"type": "regex", "config": {"pattern": "${PATTERN}"}}]})
    return folder.job(config_path=folder.path / "evalstudio.config.json")


def test_scoring_sends_the_variables_that_the_project_allows(
    job: ScoringJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("REGION", "PATTERN", "OTHER"):
        monkeypatch.setenv(name, name.lower())
    sent = scoring._variables(job)  # pyright: ignore[reportPrivateUsage]
    assert (sent["REGION"], sent["PATTERN"], "OTHER" in sent) == ("region", "pattern", False)


def test_plans_that_are_built_on_must_be_in_the_folder_that_is_sent(job: ScoringJob) -> None:
    plan: dict[str, Any] = json.loads(job.plan_path.read_text())
    for_workers = scoring._job_for_workers  # pyright: ignore[reportPrivateUsage]
    assert for_workers(job, ELSEWHERE).plan_path == Path("plan.json")
    outside = job.plan_path.parent.parent / "common.json"
    outside.write_text(json.dumps(plan))
    job.plan_path.write_text(json.dumps({"extends": "../common.json"}))
    with pytest.raises(InvalidInput, match=r"common\.json is not in .*, which is sent to the cluster"):
        for_workers(job, ELSEWHERE)


def test_a_dataset_is_called_as_it_was_named_and_found_by_its_whole_path(
    job: ScoringJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = scoring._dataset  # pyright: ignore[reportPrivateUsage]
    monkeypatch.chdir(job.plan_path.parent)
    Path("some.jsonl").touch()
    os.mkfifo("pipe.jsonl")
    named = {
        name: place(replace(job, dataset=Path(name))) for name in ("some.jsonl", "pipe.jsonl", "none.jsonl")
    }
    assert [one.name for one in named.values()] == [*named]
    # What is no file has no other name: where standard input leads to cannot be opened by it.
    assert [one.at for one in named.values()] == [
        str(Path("some.jsonl").resolve()),
        "pipe.jsonl",
        "none.jsonl",
    ]
