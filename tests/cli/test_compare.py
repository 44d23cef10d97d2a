"""``evalstudio compare`` and ``evalstudio baseline``: what they print, find and exit with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Done, Typed
from tests.support.projects import apply_project, make_project, scripted
from tests.support.scoring_files import LENGTH_PLAN, Folder

ECHO = 'return f"echo: {text}"'


@pytest.fixture
def studio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with eight scenarios, as the folder at hand."""
    apply_project(make_project(tmp_path, [scripted(f"s{number}", "hello") for number in range(8)]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def agent_says(folder: Path, reply: str) -> None:
    path = folder / "agent.py"
    text = path.read_text()
    path.write_text(text[: text.rindex("return ")] + reply + "\n")


def execute(typed: Typed, *options: str, code: int | None = 0) -> str:
    return typed("eval", "run", *options, "--json", code=code).data["execution"]["id"]


def compared(typed: Typed, *arguments: str, code: int | None = 0) -> dict[str, Any]:
    return typed("compare", *arguments, "--json", code=code).data


def test_a_broken_agent_is_a_regression_that_names_what_broke(typed: Typed, studio: Path) -> None:
    execute(typed)
    agent_says(studio, 'return "nothing useful"')
    execute(typed, code=1)
    done = typed("compare", "last~1", "last", code=1)
    assert done.out.index("s0") < done.out.index("pass rate: 100% → 0%")
    assert "regressed" in done.out
    assert "answer" in done.out
    assert "connector code (test-agent)" in done.out
    assert "REGRESSION: the pass rate is lower overall" in done.out


def test_a_harmless_change_is_none(typed: Typed, studio: Path) -> None:
    execute(typed)
    agent_says(studio, 'return f"well, echo: {text}"')
    execute(typed)
    done = typed("compare", "last~1")
    assert "subjects: 8 unchanged" in done.out
    assert "no regression shown" in done.out


def test_one_scenario_that_broke_is_not_called_fine(typed: Typed, studio: Path) -> None:
    execute(typed)
    agent_says(studio, 'return "no" if ctx.run.scenario == "s3" else f"echo: {text}"')
    execute(typed, code=1)
    result = compared(typed, "last~1", "last", code=3)
    assert [(one["subject"]["scenarioName"], one["category"]) for one in result["subjects"]] == [
        ("s3", "regressed")
    ]
    assert "too few to rule out chance" in result["reasons"][0]


def test_earlier_executions_tell_flakiness_from_a_change(typed: Typed, studio: Path) -> None:
    agent_says(studio, 'return "no" if ctx.run.scenario == "s3" else f"echo: {text}"')
    for _ in range(2):
        execute(typed, code=1)
    agent_says(studio, ECHO)
    for _ in range(2):
        execute(typed)
    agent_says(studio, 'return "no" if ctx.run.scenario == "s3" else f"echo: {text}"')
    execute(typed, code=1)
    (subject,) = compared(typed, "last~1", "last")["subjects"]
    assert (subject["category"], subject["drop"]["verdict"]) == ("flaky", "explained")
    assert (subject["drop"]["historyPassed"], subject["drop"]["historyScored"]) == (2, 4)


def test_a_changed_scenario_is_shown_and_not_compared(typed: Typed, studio: Path) -> None:
    execute(typed)
    definitions = json.loads((studio / "evals.json").read_text())
    definitions["scenarios"][0]["script"] = ["something else"]
    definitions["scenarios"][1]["evaluators"][0]["config"]["pattern"] = "e"
    definitions["scenarios"][2]["tags"] = ["only a tag"]
    (studio / "evals.json").write_text(json.dumps(definitions))
    typed("apply", "evals.json")
    execute(typed)
    result = compared(typed, "last~1", "last")
    assert (result["counts"]["changed"], result["counts"]["unchanged"]) == (2, 6)
    changed = {one["subject"]["scenarioName"]: one["changes"] for one in result["subjects"]}
    assert "scenario" in [one["what"] for one in changed["s0"]]
    assert [one["what"] for one in changed["s1"]] == ["evaluators"]
    assert any("shown as changed" in note for note in result["notes"])


class TestWhichAreMeant:
    def test_a_baseline_by_its_name(self, typed: Typed, studio: Path) -> None:
        first = execute(typed)
        execute(typed)
        assert first in typed("baseline", "set", "main", first).out
        execute(typed)
        assert compared(typed, "MAIN")["base"]["id"] == first
        assert first in typed("baseline", "list").out
        assert "removed" in typed("baseline", "remove", "main").out
        assert "No baselines" in typed("baseline", "list").out
        assert 'no baseline "main"' in typed("baseline", "remove", "main", code=2).err

    def test_the_last_whole_one_is_set_if_none_is_named(self, typed: Typed, studio: Path) -> None:
        whole = execute(typed)
        execute(typed, "--only", "s1")
        assert typed("baseline", "set", "main", "--json").data["executionId"] == whole

    def test_without_a_baseline_the_last_clean_whole_one_of_the_branch(
        self, typed: Typed, studio: Path
    ) -> None:
        main = execute(typed, "--label", "branch=main")
        execute(typed, "--label", "branch=main", "--only", "s1")
        execute(typed, "--label", "branch=main", "--label", "dirty=true")
        execute(typed, "--label", "branch=main", "--label", "pullRequest=3")
        execute(typed, "--label", "branch=other")
        newest = execute(typed, "--label", "branch=main")
        assert compared(typed, "main", newest)["base"]["id"] == main
        assert compared(typed, "main", "last~1")["base"]["id"] == newest

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["nope"], 'no execution "nope", no baseline of this name'),
            (["last"], "the same execution"),
            (["last~7"], 'there is no "last~7": there are 2 executions'),
            (["last~1", "--eval", "nope"], "there is no eval called"),
            (["last", "--connectors", "agent", "nope"], 'against a connector "nope"; it has: agent'),
        ],
    )
    def test_what_cannot_be_found_is_wrong_input(
        self, typed: Typed, studio: Path, words: list[str], says: str
    ) -> None:
        execute(typed)
        execute(typed)
        assert says in typed("compare", *words, code=2).err

    @pytest.mark.parametrize("name", ["last", "last~2", " ", "a\nb", "x" * 201])
    def test_names_that_mean_something_else_are_refused(self, typed: Typed, studio: Path, name: str) -> None:
        execute(typed)
        assert "Error" in typed("baseline", "set", name, code=2).err

    def test_a_baseline_outlives_what_would_delete_it(self, typed: Typed, studio: Path) -> None:
        first = execute(typed)
        typed("baseline", "set", "main")
        assert 'the baseline "main"' in typed("execution", "delete", first, "--yes", code=2).err


def test_two_connectors_of_one_execution(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(tmp_path, [scripted(f"s{number}", "hello") for number in range(8)])
    other = '\n\n@define_connector(type="other")\nasync def other(ctx: ConnectorContext) -> str:\n'
    other += '    return "no"\n'
    (tmp_path / "agent.py").write_text((tmp_path / "agent.py").read_text() + other)
    definitions = json.loads((tmp_path / "evals.json").read_text())
    definitions["connectors"].append({"name": "new agent", "type": "other"})
    definitions["evals"][0]["connectors"].append("new agent")
    (tmp_path / "evals.json").write_text(json.dumps(definitions))
    monkeypatch.chdir(tmp_path)
    typed("apply", "evals.json")
    execute(typed, code=1)
    result = compared(typed, "last", "--connectors", "agent", "New Agent", code=1)
    assert (result["base"]["connector"], result["candidate"]["connector"]) == ("agent", "new agent")
    assert result["counts"]["regressed"] == 8
    assert {"answer", "connector"} == {one["what"] for one in result["subjects"][0]["changes"]}


class TestWholeOrNot:
    def test_is_said_in_lists_and_summaries(self, typed: Typed, studio: Path) -> None:
        execute(typed, "--only", "s1")
        execute(typed, "--connector", "agent")
        assert "partial: only" in typed("execution", "list").out
        shown = typed("execution", "show", _ids(typed)[1]).out
        assert "Not the whole eval: only; it is in no trend and no default baseline" in shown
        assert "partial:" not in shown, "it is said once"
        items = typed("execution", "list", "--json").data["items"]
        assert [item.get("partial") for item in items] == [None, "only"]
        assert len(typed("execution", "list", "--whole", "--json").data["items"]) == 1

    def test_last_failed_and_replayed(self, typed: Typed, studio: Path) -> None:
        agent_says(studio, 'return "no" if ctx.run.scenario == "s3" else f"echo: {text}"')
        execute(typed, "--record", "tape.jsonl", code=1)
        execute(typed, "--last-failed", code=1)
        execute(typed, "--replay", "tape.jsonl", code=1)
        items = typed("execution", "list", "--json").data["items"]
        marks = [(item.get("partial"), item["replayed"]) for item in items]
        assert marks == [(None, True), ("last-failed", False), (None, False)]
        assert "replayed" in typed("execution", "list").out

    def test_labels_are_listed_and_filtered_by(self, typed: Typed, studio: Path) -> None:
        mine = execute(typed, "--label", "branch=main")
        execute(typed, "--label", "branch=other")
        assert "branch=main" in typed("execution", "list").out
        items = typed("execution", "list", "--label", "branch=main", "--json").data["items"]
        assert [item["id"] for item in items] == [mine]
        assert "No such executions" in typed("execution", "list", "--label", "branch=none").out


def _ids(typed: Typed) -> list[str]:
    return [item["id"] for item in typed("execution", "list", "--json").data["items"]]


class TestResultsFiles:
    def score(
        self, typed: Typed, folder: Folder, name: str, responses: dict[str, str], plan: Any = None
    ) -> str:
        dataset = folder.dataset(
            [{"id": key, "response": text} for key, text in responses.items()], f"{name}.in"
        )
        renamed = dataset.rename(dataset.with_suffix(".jsonl"))
        output = folder.path / f"{name}-results.jsonl"
        made = folder.plan(plan or LENGTH_PLAN)
        typed("score", str(renamed), "--plan", str(made), "--output", str(output), code=None)
        return str(output)

    def test_are_compared_by_record(self, typed: Typed, tmp_path: Path) -> None:
        folder = Folder(tmp_path)
        before = self.score(typed, folder, "before", {f"r{n}": "long enough" for n in range(9)})
        after = {f"r{n}": "no" if n < 7 else "long enough" for n in range(1, 10)}
        worse = self.score(typed, folder, "after", after)
        result = compared(typed, before, worse, code=1)
        assert (result["counts"]["regressed"], result["counts"]["new"], result["counts"]["gone"]) == (6, 1, 1)
        assert {one["name"] for one in result["measures"]} >= {"ok", "rule-based"}
        assert compared(typed, before, before)["counts"]["unchanged"] == 9
        without = typed("compare", before, worse, "--min-effect", "0.9", code=3)
        assert "not decided: 1 subject of the base did not run in the candidate: r0" in without.out
        larger = typed("compare", before, worse, "--min-effect", "0.9", "--allow-gone", code=0)
        assert "no regression shown" in larger.out

    def test_scored_by_another_plan_are_not_compared(self, typed: Typed, tmp_path: Path) -> None:
        folder = Folder(tmp_path)
        before = self.score(typed, folder, "before", {"r1": "long enough"})
        stricter = json.loads(json.dumps(LENGTH_PLAN).replace('"min": 3', '"min": 4'))
        after = self.score(typed, folder, "after", {"r1": "long enough"}, stricter)
        assert compared(typed, before, after, code=3)["counts"]["changed"] == 1
        Path(f"{after}.job.json").unlink()
        result = compared(typed, before, after)
        assert "nothing says whether both files were scored by the same plan" in result["notes"][0]

    @pytest.mark.parametrize(
        "line", ['{"recordId": "a"}', "nonsense", '{"recordId": "a", "outcome": "good"}', "[]"]
    )
    def test_a_file_that_is_none_is_refused_with_its_line(
        self, typed: Typed, tmp_path: Path, line: str
    ) -> None:
        path = tmp_path / "results.jsonl"
        path.write_text(line + "\n")
        done: Done = typed("compare", str(path), str(path), code=2)
        assert "line 1: is not a result of evalstudio score" in done.err
