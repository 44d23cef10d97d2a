"""Scenarios and evals in files as tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.pytest_plugin.conftest import RunTests
from tests.support.projects import calls, make_project, scripted

FILES = "evalstudio_files = evals.json more/*.yaml\ntestpaths = . "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with one eval, and a scenario in no eval, beside tests of its own."""
    days = [{"name": "monday", "vars": {"day": "Monday"}}, {"name": "a::b\n", "vars": {"day": "break"}}]
    scenarios: list[dict[str, Any]] = [
        scripted("greets", "hello", tags=["smoke"], personas=["Ann", "Bob"]),
        scripted("says no", "x", pattern="zzz"),
        scripted("days", "on {{day}}", cases=days),
        scripted("measures", "x") | {"evaluators": [{"type": "response-length"}]},
    ]
    make_project(tmp_path, scenarios, repetitions=2, personas=[{"name": "Ann"}, {"name": "Bob"}])
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "alone.yaml").write_text(json.dumps({"scenarios": [scripted("alone", "hello")]}))
    (tmp_path / "more" / "notes.json").write_text("this is no JSON")
    (tmp_path / "test_own.py").write_text("def test_own(): pass\n")
    return tmp_path


def test_without_being_asked_no_file_is_collected_and_nothing_is_imported(
    folder: Path, run_tests: RunTests
) -> None:
    (folder / "test_own.py").write_text(
        "import sys\n"
        "def test_own():\n"
        "    ours = [name for name in sys.modules if name.startswith('evalstudio')]\n"
        "    assert sorted(ours) == ['evalstudio', 'evalstudio.pytest_plugin', 'evalstudio.version']\n"
        "    assert not {'pydantic', 'yaml', 'sqlalchemy'} & sys.modules.keys()\n"
    )
    assert run_tests(cold=True).results == {"test_own.py::test_own": "passed"}


def test_every_subject_is_a_test_and_a_failure_tells_the_turn_the_evaluator_and_the_reason(
    folder: Path, run_tests: RunTests
) -> None:
    done = run_tests(code=1, ini=FILES)
    assert done.results == {
        "evals.json::all::greets(Ann)": "passed",
        "evals.json::all::greets(Bob)": "passed",
        "evals.json::all::says no": "failed",
        "evals.json::all::days(monday)": "passed",
        "evals.json::all::days(a:b?)": "failed",
        "evals.json::all::measures": "failed",
        "more/alone.yaml::alone": "passed",
        "test_own.py::test_own": "passed",
    }
    assert 'turn 1, evaluator "regex" failed: no match for /zzz/' in done.out
    assert "error at turn 1, fault of the agent: " in done.out
    assert "the agent broke" in done.out
    assert "nothing was asserted: metrics only measure" in done.out
    assert "Traceback" not in done.out
    assert len(calls(folder)) == 6 * 2 + 1
    assert not (folder / "data").exists()


def test_tests_are_chosen_by_name_by_tag_by_mark_and_by_node_id(folder: Path, run_tests: RunTests) -> None:
    assert list(run_tests("-k", "Bob", ini=FILES).results) == ["evals.json::all::greets(Bob)"]
    tagged = run_tests("-k", "smoke", "-m", "evalstudio", "--strict-markers", ini=FILES).results
    assert list(tagged) == ["evals.json::all::greets(Ann)", "evals.json::all::greets(Bob)"]
    assert list(run_tests("-m", "not evalstudio", ini=FILES).results) == ["test_own.py::test_own"]
    named = run_tests("evals.json::all::days(monday)", ini=FILES).results
    assert list(named) == ["evals.json::all::days(monday)"]


def test_what_failed_last_runs_again(folder: Path, run_tests: RunTests) -> None:
    run_tests(code=1, ini=FILES)
    again = run_tests("--lf", code=1, ini=FILES).results
    assert list(again) == [
        "evals.json::all::says no",
        "evals.json::all::days(a:b?)",
        "evals.json::all::measures",
    ]


def test_an_option_chooses_files_for_once(folder: Path, run_tests: RunTests) -> None:
    done = run_tests("--evalstudio-files", "more/alone.yaml", code=1)
    assert done.results == {"more/alone.yaml::alone": "failed", "test_own.py::test_own": "passed"}
    assert "name a connector with evalstudio_connector (the files define none)" in done.out
    unknown = run_tests(
        "--evalstudio-files", ".", "--evalstudio-connector", "nobody", "-k", "alone", code=None
    )
    assert 'the files define no connector called "nobody"' in unknown.out or "notes.json" in unknown.out


def test_definitions_that_cannot_be_used_are_errors_with_their_place(
    folder: Path, run_tests: RunTests
) -> None:
    (folder / "more" / "alone.yaml").write_text(
        "evals: [{name: a, scenarios: [nobody], connectors: [agent]}]"
    )
    done = run_tests(code=2, ini=FILES)
    assert done.out.count('there is no scenario called "nobody"') >= 1
    assert "alone.yaml:1" in done.out
    missing = run_tests(code=4, ini="evalstudio_files = nowhere.yaml")
    assert "nowhere.yaml: no such file or folder" in missing.out
