"""Running straight from files: without apply, without a project, several evals at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Done, Typed
from tests.support.projects import apply_project, calls, make_project, scripted

from evalstudio.cli.run_files import worst


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose definitions are in files and nowhere else."""
    make_project(
        tmp_path, [scripted("greets", "hello", tags=["smoke"]), scripted("fails", "x", pattern="zzz")]
    )
    (tmp_path / "more.yaml").write_text(
        "evals:\n"
        "  - {name: smoke one, scenarios: [greets], connectors: [agent]}\n"
        "  - {name: smoke two, scenarios: [greets], connectors: [agent]}\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def executions(typed: Typed) -> list[dict[str, Any]]:
    return json.loads(typed("execution", "list", "--json").out)["items"]


def test_an_eval_in_a_file_runs_without_apply_and_its_results_are_kept(typed: Typed, folder: Path) -> None:
    done = typed("eval", "run", "-f", "evals.json", code=1)
    assert "2 runs: 1 passed, 1 failed" in done.out
    assert "no project" not in done.err
    assert [one["evalName"] for one in executions(typed)] == ["all"]
    assert typed("eval", "list", "--json").data == []


def test_executions_from_files_know_each_other_by_name(typed: Typed, folder: Path) -> None:
    typed("eval", "run", "-f", "evals.json", code=1)
    before = len(calls(folder))
    done = typed("eval", "run", "-f", "evals.json", "--last-failed", code=1)
    assert "1 run: 0 passed, 1 failed" in done.out
    assert [one["text"] for one in calls(folder)[before:]] == ["x"]
    assert len({one["evalId"] for one in executions(typed)}) == 1


def test_several_evals_are_one_execution_each_and_the_exit_code_is_the_worst(
    typed: Typed, folder: Path
) -> None:
    done = typed("eval", "run", "-f", ".", code=1)
    assert sorted(one["evalName"] for one in executions(typed)) == ["all", "smoke one", "smoke two"]
    rows = [line.split() for line in done.out.split("Evals")[1].splitlines() if line.split()[-1:] != []]
    assert [row[-1] for row in rows if row[-1] in ("met", "missed")] == ["missed", "met", "met"]
    lists = typed("eval", "run", "-f", ".", "smoke*", "--json").data
    assert [one["execution"]["evalName"] for one in lists] == ["smoke one", "smoke two"]


def test_stored_evals_are_chosen_by_pattern_by_name_or_all(typed: Typed, folder: Path) -> None:
    typed("apply", ".")
    assert "name one" in typed("eval", "run", code=2).err
    typed("eval", "run", "SMOKE*")
    typed("eval", "run", "smoke one", "smoke two", "smoke one")
    assert len(executions(typed)) == 4
    typed("eval", "run", "--all", code=1)
    assert len(executions(typed)) == 7
    assert (
        'there is no eval called "smoke three"'
        in typed("eval", "run", "smoke one", "smoke three", code=2).err
    )


def test_a_tag_narrows_evals_to_its_scenarios_and_leaves_out_those_without(
    typed: Typed, folder: Path
) -> None:
    typed("eval", "run", "-f", "evals.json", "--tag", "smoke")
    assert [one["text"] for one in calls(folder)] == ["hello"]
    assert "is tagged none" in typed("eval", "run", "-f", "evals.json", "--tag", "none", code=2).err
    refused = typed("eval", "run", "-f", "evals.json", "--tag", "smoke", "--only", "fails", code=2)
    assert "exclude each other" in refused.err


def test_one_eval_that_cannot_be_run_keeps_the_others_from_nothing(typed: Typed, folder: Path) -> None:
    typed("eval", "run", "-f", ".", code=1)
    again = typed("eval", "run", "-f", ".", "--last-failed", code=1)
    assert again.err.count("nothing failed or errored") == 2
    (folder / "judged.yaml").write_text(
        "scenarios: [{name: judged, instructions: ask, successCriteria: it answers}]\n"
        "evals: [{name: needs a model, scenarios: [judged], connectors: [agent]}]\n"
    )
    refused = typed("eval", "run", "-f", ".", code=2)
    assert 'scenario "judged"' in refused.err
    assert refused.out.count("execution") >= 3


def test_files_that_are_wrong_start_nothing(typed: Typed, folder: Path) -> None:
    (folder / "more.yaml").write_text("evals: [{name: a, scenarios: [nobody], connectors: [agent]}]")
    assert 'there is no scenario called "nobody"' in typed("eval", "run", "-f", ".", code=2).err
    (folder / "more.yaml").write_text("scenarios: [{name: half")
    assert "more.yaml:" in typed("eval", "run", "-f", ".", code=2).err
    assert "no such file" in typed("eval", "run", "-f", "nowhere", code=2).err
    server = typed("eval", "run", "-f", ".", "--server", "http://127.0.0.1:1", code=2)
    assert "--file runs on this machine" in server.err
    assert calls(folder) == []


def test_a_file_without_evals_says_how_its_scenarios_are_run(typed: Typed, folder: Path) -> None:
    (folder / "only.yaml").write_text(json.dumps({"scenarios": [scripted("alone", "x")]}))
    assert "evalstudio run --file" in typed("eval", "run", "-f", "only.yaml", code=2).err


class TestPointingOutDifferences:
    def changed(self, folder: Path, name: str = "greets") -> None:
        path = folder / "evals.json"
        path.write_text(
            path.read_text().replace(f'"{name}", "script": ["hello"]', f'"{name}", "script": ["hi"]')
        )

    def run(self, typed: Typed, *more: str) -> Done:
        return typed("eval", "run", "all", "--only", "greets", *more)

    def test_of_a_file_that_was_changed_since_it_was_applied(self, typed: Typed, folder: Path) -> None:
        typed("apply", "evals.json")
        assert "Changed since" not in self.run(typed).err
        self.changed(folder)
        assert "Changed since they were applied: evals.json" in self.run(typed).err
        assert [one["text"] for one in calls(folder)] == ["hello", "hello"]
        from_file = self.run(typed, "-f", "evals.json")
        assert 'Stored differently: scenario "greets"' in from_file.err
        assert calls(folder)[-1]["text"] == "hi"
        typed("apply", "evals.json")
        assert self.run(typed).err == ""

    def test_of_a_definition_that_was_changed_elsewhere(self, typed: Typed, folder: Path) -> None:
        typed("apply", "evals.json")
        typed("scenario", "update", "greets", "--say", "good day")
        assert "Changed since they were applied: evals.json" in self.run(typed).err

    def test_not_of_spaces_or_of_other_files(self, typed: Typed, folder: Path) -> None:
        typed("apply", ".")
        path = folder / "evals.json"
        path.write_text(json.dumps(json.loads(path.read_text()), indent=4))
        (folder / "more.yaml").write_text("# empty\n")
        assert self.run(typed).err == ""

    def test_of_a_file_that_is_gone_or_broken(self, typed: Typed, folder: Path) -> None:
        typed("apply", "evals.json")
        (folder / "evals.json").write_text("{")
        assert "evals.json (cannot be read)" in self.run(typed).err
        (folder / "evals.json").unlink()
        assert "evals.json (is gone)" in self.run(typed).err

    def test_not_of_what_was_imported_from_lines(self, typed: Typed, folder: Path) -> None:
        typed("apply", "evals.json")
        (folder / "lines.jsonl").write_text(json.dumps(scripted("greets", "from a line")))
        typed("scenario", "import", "lines.jsonl")
        typed("scenario", "update", "greets", "--say", "hello")
        assert "lines.jsonl" not in self.run(typed).err

    def test_a_damaged_record_is_as_good_as_none(self, typed: Typed, folder: Path) -> None:
        typed("apply", "evals.json")
        (folder / "data" / ".applied.json").write_text('{"scenario/greets": 3, "x": ')
        self.changed(folder)
        assert self.run(typed).err == ""


AGENT = 'def reply(messages):\n    return "echo: " + messages[-1].text\n'


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is no project: scenarios, and a function to ask."""
    (tmp_path / "s.json").write_text(
        json.dumps({"scenarios": [scripted("says hello", "hello"), scripted("fails", "x", pattern="zzz")]})
    )
    (tmp_path / "straight_agent.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_scenarios_run_without_a_project_and_leave_nothing_behind(typed: Typed, bare: Path) -> None:
    done = typed("run", "-f", "s.json", "--connector", "straight_agent:reply", code=1)
    assert "2 runs: 1 passed, 1 failed" in done.out
    assert done.err.count("There is no project here") == 1
    assert {path.name for path in bare.iterdir()} - {"__pycache__"} == {"s.json", "straight_agent.py"}
    typed(
        "run", "-f", "s.json", "--connector", "straight_agent:reply", "--only", "says hello", "--repeat", "3"
    )


def test_scenarios_of_a_file_run_against_the_connector_of_the_project(typed: Typed, folder: Path) -> None:
    done = typed("run", "-f", "evals.json", "--only", "greets")
    assert "1 run: 1 passed" in done.out
    assert [one.get("evalId") for one in executions(typed)] == [None]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--connector", "nobody"], 'there is no connector called "nobody"'),
        ([], "say which agent to talk to with --connector: none is defined"),
        (
            ["--connector", "straight_agent:reply", "--only", "x"],
            'there is no scenario called "x" in the files',
        ),
        (["--connector", "straight_agent:reply", "--tag", "x"], "there is no scenario tagged x"),
    ],
)
def test_what_cannot_be_run_is_told_by_name(
    typed: Typed, bare: Path, arguments: list[str], says: str
) -> None:
    assert says in typed("run", "-f", "s.json", *arguments, code=2).err


def test_an_agent_that_cannot_be_imported_is_an_error_and_no_pass(typed: Typed, bare: Path) -> None:
    done = typed("run", "-f", "s.json", "--connector", "no_such_module:reply", code=3)
    assert "2 errored" in done.out


def test_the_group_of_commands_stays_what_it_was(typed: Typed, folder: Path) -> None:
    assert "No runs." in typed("run", "list").out
    assert "--file and --connector are not for list" in typed("run", "-f", "evals.json", "list", code=2).err


def test_the_worst_code_is_the_one_that_stands() -> None:
    assert worst([0, 3, 1, 0]) == 1
    assert worst([0, 3]) == 3
    assert worst([]) == 0
    assert worst([1, 130, 2]) == 130


def test_what_is_remembered_of_files_is_no_file_of_definitions(typed: Typed, folder: Path) -> None:
    typed("apply", ".")
    assert "Nothing to change." in typed("apply", ".").out
    typed("eval", "run", "-f", ".", code=1)


def test_apply_remembers_nothing_in_a_dry_run(typed: Typed, folder: Path) -> None:
    typed("apply", "evals.json", "--dry-run")
    assert not (folder / "data" / ".applied.json").exists()
    apply_project(folder / "evalstudio.config.json")
    assert (folder / "data" / ".applied.json").exists()
