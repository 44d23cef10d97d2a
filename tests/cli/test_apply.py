"""``evalstudio apply``, ``export`` and ``schema``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.conftest import Typed

from evalstudio.base.schemas import compile_schema

MORE = """
personas:
  - {name: Ana, headers: {Authorization: Bearer very-secret}}
scenarios:
  - {name: Hello, personas: [Ana], script: [hi], evaluators: [{type: greets-first}]}
"""

WRONG = """connectors:
  - name: C
    type: http
    config: {paht: /x, method: BREW}
scenarios:
  - name: S
    script: ['{{city}}']
    cases: [{name: rome, vars: {town: Rome}}]
    evaluators:
      - {type: regex, config: {patern: x}}
      - {type: latancy}
      - {type: latency-budget, config: {maxMs: fast}}
"""


@pytest.fixture
def more(project: Path, typed: Typed) -> Path:
    path = project / "evals" / "more.yaml"
    path.write_text(MORE)
    return path


class TestApply:
    def test_the_plan_is_shown_and_made(self, more: Path, typed: Typed) -> None:
        assert typed("apply", "evals").out == "+ persona Ana\n+ scenario Hello\n2 added.\n"
        assert typed("apply", "evals").out == "Nothing to change.\n"
        more.write_text(MORE.replace("[hi]", "[ho]").replace("name: Hello,", "name: Hello, tags: [x],"))
        assert typed("apply", str(more)).out == "~ scenario Hello (script, tags)\n1 changed.\n"
        assert "ho" in typed("scenario", "show", "Hello").out

    def test_a_dry_run_changes_nothing(self, more: Path, typed: Typed) -> None:
        shown = typed("apply", "evals", "--dry-run").out
        assert shown == "+ persona Ana\n+ scenario Hello\n2 to add; nothing was changed.\n"
        assert typed("persona", "list", "--json").data == []

    def test_pruning_asks_first(self, more: Path, typed: Typed) -> None:
        typed("apply", "evals")
        more.unlink()
        asked = typed("apply", "evals", "--prune", code=2)
        assert "- scenario Hello\n- persona Ana\n" in asked.out
        assert "Delete 2 definitions? Nobody can answer here; add --yes." in asked.err
        assert len(typed("persona", "list", "--json").data) == 1
        assert typed("apply", "evals", "--prune", "--yes").out.endswith("2 deleted.\n")
        assert typed("persona", "list", "--json").data == []

    def test_the_json_is_the_plan(self, more: Path, typed: Typed) -> None:
        found = typed("apply", "evals", "--json").data
        assert found["applied"] is True
        assert found["changes"][1] == {"change": "+", "kind": "scenario", "name": "Hello", "fields": []}

    def test_everything_that_is_wrong_is_told_at_once_by_file_and_line(
        self, more: Path, typed: Typed
    ) -> None:
        more.write_text(WRONG)
        told = typed("apply", "evals", code=2).err.replace("evals/more.yaml:", "").splitlines()
        assert told == [
            "Error: 8 problems:",
            "  4: connector \"C\": config.method: must be 'POST', 'PUT', 'PATCH' or 'GET'",
            '  4: connector "C": config.paht: unknown key; did you mean path?',
            '  2: connector "C": baseUrl: a connector of type http needs the agent\'s address',
            '  10: scenario "S": evaluators[0].config.pattern: is missing',
            '  10: scenario "S": evaluators[0].config.patern: unknown key; did you mean pattern?',
            '  11: scenario "S": evaluators[1].type: no evaluator is called "latancy"; '
            "did you mean latency or latency-budget?",
            '  12: scenario "S": evaluators[2].config.maxMs: expected a number',
            '  7: scenario "S": case "rome": script[0]: {{city}} has no value in this case; '
            "its values are: town",
        ]

    def test_a_mistake_anywhere_and_nothing_is_changed(self, more: Path, typed: Typed) -> None:
        more.write_text(MORE + "evals:\n  - {name: E, scenarios: [Helo], connectors: [My agent]}\n")
        told = typed("apply", "evals", code=2)
        assert told.err == (
            'Error: evals/more.yaml:7: eval "E": scenarios[0]: there is no scenario called "Helo"; '
            "did you mean Hello?\n"
        )
        assert typed("persona", "list", "--json").data == []

    def test_unknown_paths_and_empty_folders(self, project: Path, typed: Typed) -> None:
        assert "nope: no such file or folder" in typed("apply", "nope", code=2).err
        (project / "empty").mkdir()
        assert "there are no definitions in empty" in typed("apply", "empty", "--prune", "--yes", code=2).err


class TestExport:
    def test_all_in_one_on_stdout(self, more: Path, typed: Typed) -> None:
        typed("apply", "evals")
        shown = typed("export").out
        assert "very-secret" not in shown
        found = yaml.safe_load(shown)
        assert found["personas"] == [{"name": "Ana", "headers": {"Authorization": "********"}}]
        assert json.loads(typed("export", "--format", "json").out) == found

    @pytest.mark.parametrize("form", ["yaml", "json"])
    def test_one_file_each_and_back(self, more: Path, typed: Typed, form: str) -> None:
        typed("apply", "evals")
        assert typed("export", "out", "--format", form).out == "5 definitions in out\n"
        assert Path("out/scenarios", f"hello.{form}").is_file()
        assert typed("apply", "out", "--prune").out == "Nothing to change.\n"
        assert typed("export", "out", "--format", form).err == ""

    def test_what_else_lies_there_is_told(self, project: Path, typed: Typed) -> None:
        assert "may define the same names again: evals/opening-hours.yaml" in typed("export", "evals").err

    def test_an_empty_project(self, project: Path, typed: Typed) -> None:
        for kind, name in (("eval", "First eval"), ("scenario", "Opening hours"), ("connector", "My agent")):
            typed(kind, "delete", name, "--yes")
        assert typed("export").out == "# nothing is defined yet\n"
        assert typed("export", "--json").data == {}

    def test_file_names_are_safe(self, project: Path, typed: Typed) -> None:
        for name in ("../../etc/passwd", "con", "a/b", "A B", "a-b", "🙂", "x" * 300, "."):
            typed("persona", "create", "--name", name)
        typed("export", "out")
        found = sorted(path.name for path in Path("out/personas").iterdir())
        wanted = ["a-b-2.yaml", "a-b-3.yaml", "a-b.yaml", "con-.yaml", "etc-passwd.yaml", "unnamed-2.yaml"]
        assert found == [*wanted, "unnamed.yaml", "x" * 60 + ".yaml"]
        assert typed("apply", "out").out == "Nothing to change.\n"

    def test_a_format_that_is_none(self, project: Path, typed: Typed) -> None:
        assert '--format is yaml or json, not "xml"' in typed("export", "--format", "xml", code=2).err

    def test_a_folder_that_cannot_be_written(self, project: Path, typed: Typed) -> None:
        (project / "out").write_text("")
        assert "cannot be written" in typed("export", "out", code=2).err


class TestSchema:
    def test_what_is_exported_fits_the_schemas(self, more: Path, typed: Typed) -> None:
        typed("apply", "evals")
        typed("export", "out")
        whole = compile_schema(typed("schema", "definitions").data)
        assert whole.is_valid(yaml.safe_load(typed("export").out))
        for path in Path("out").rglob("*.yaml"):
            one = yaml.safe_load(path.read_text())
            assert compile_schema(typed("schema", one["kind"]).data).is_valid(one)
            assert whole.is_valid(one)
            assert whole.is_valid([one])

    @pytest.mark.parametrize(
        "wrong",
        [
            {"kind": "scenario", "name": "S", "evaluators": [{"type": "regx"}]},
            {"kind": "scenario", "name": "S", "evaluators": [{"type": "regex", "config": {"patern": "x"}}]},
            {"kind": "scenario", "name": "S", "personaIds": ["x"]},
            {"kind": "connector", "name": "C", "type": "http", "config": {"method": "SHOUT"}},
            {"kind": "eval", "name": "E", "scenarios": [], "connectors": ["x"]},
            {"personas": [{}]},
        ],
    )
    def test_editors_see_what_is_wrong(self, project: Path, typed: Typed, wrong: dict[str, Any]) -> None:
        assert not compile_schema(typed("schema", "definitions").data).is_valid(wrong)

    def test_plugins_are_known(self, project: Path, typed: Typed) -> None:
        schema = compile_schema(typed("schema", "scenario").data)
        assert schema.is_valid({"kind": "scenario", "name": "S", "evaluators": [{"type": "greets-first"}]})

    @pytest.mark.parametrize("kind", ["config", "scoring", "definitions", "persona", "eval", "connector"])
    def test_every_schema_is_one(self, project: Path, typed: Typed, kind: str) -> None:
        compile_schema(typed("schema", kind).data)

    def test_an_unknown_one(self, project: Path, typed: Typed) -> None:
        assert "did you mean scenario" in typed("schema", "scenarios", code=2).err
