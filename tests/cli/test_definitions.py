"""Personas, scenarios, connectors and evals by command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.cli.conftest import Terminal, Typed

pytestmark = pytest.mark.usefixtures("project")


class TestPersonas:
    def test_from_making_to_deleting(self, typed: Typed) -> None:
        made = typed(
            "persona", "create", "--name", "Ana", "--description", "In a hurry", "--header", "X-Team: a:b"
        )
        assert made.out == 'Made the persona "Ana".\n'
        assert "In a hurry" in typed("persona", "list").out
        typed(
            "persona", "update", "ana", "--name", "Ana B", "--wants", "a table", "--system-prompt", "Be brief"
        )
        assert yaml.safe_load(typed("persona", "show", "ANA B").out) == {
            "kind": "persona",
            "name": "Ana B",
            "description": "In a hurry",
            "systemPrompt": "Be brief",
            "headers": {"X-Team": "a:b"},
            "wants": "a table",
        }
        assert typed("persona", "delete", "Ana B", "--yes").out == 'Deleted the persona "Ana B".\n'
        assert "No personas yet." in typed("persona", "list").out

    def test_by_id(self, typed: Typed) -> None:
        made = typed("persona", "create", "--name", "Ana", "--json").data
        assert typed("persona", "show", made["id"], "--json").data == made
        typed("persona", "delete", made["id"], "-y")

    def test_names_are_unique_in_any_case(self, typed: Typed) -> None:
        typed("persona", "create", "--name", "Ana")
        typed("persona", "create", "--name", "Bob")
        assert (
            'There is already a persona named "Ana"'
            in typed("persona", "create", "--name", "ANA", code=2).err
        )
        assert "already a persona" in typed("persona", "update", "Bob", "--name", "aNa", code=2).err

    def test_unknown_ones_suggest_close_ones(self, typed: Typed) -> None:
        typed("persona", "create", "--name", "Ana")
        for command in (("show",), ("update", "--wants", "x"), ("delete", "--yes")):
            told = typed("persona", command[0], "Anna", *command[1:], code=2).err
            assert told == 'Error: there is no persona called "Anna"; did you mean Ana?\n'

    def test_secrets_are_masked_and_kept(self, typed: Typed, project: Path) -> None:
        typed("persona", "create", "--name", "Ana", "--header", "Authorization: Bearer very-secret")
        shown = typed("persona", "show", "Ana").out
        assert "********" in shown
        assert "very-secret" not in shown + typed("persona", "show", "Ana", "--json").out
        assert "very-secret" not in typed("persona", "list", "--json").out
        typed("persona", "update", "Ana", "--file", "-", stdin=shown + "wants: more\n")
        database = b"".join(path.read_bytes() for path in (project / "data").glob("evalstudio.db*"))
        assert b"very-secret" not in database
        assert "Authorization" in typed("persona", "show", "Ana").out

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (("create",), "persona: name: is missing"),
            (("create", "--name", " "), "must not be blank"),
            (("create", "--name", "A", "--header", "nonsense"), "--header takes 'Name: value'"),
            (("create", "--file", "nope.yaml"), "nope.yaml: no such file"),
            (("create", "--file", "-"), "stdin: expected the fields of one persona"),
        ],
    )
    def test_what_is_wrong_is_said(self, typed: Typed, arguments: tuple[str, ...], expected: str) -> None:
        assert expected in typed("persona", *arguments, code=2).err


class TestFromFiles:
    @pytest.mark.parametrize(
        "text", ["name: Ana\nwants: x\n", '{"kind": "persona", "name": "Ana", "wants": "x"}']
    )
    def test_yaml_or_json_from_stdin(self, typed: Typed, text: str) -> None:
        found = typed("persona", "create", "--file", "-", "--json", stdin=text).data
        assert (found["name"], found["wants"]) == ("Ana", "x")

    def test_options_go_over_the_file(self, typed: Typed, tmp_path: Path) -> None:
        file = tmp_path / "p.json"
        file.write_text(json.dumps({"name": "Ana", "wants": "x"}))
        found = typed("persona", "create", "-f", str(file), "--name", "Bob", "--json").data
        assert (found["name"], found["wants"]) == ("Bob", "x")

    def test_null_takes_a_field_out(self, typed: Typed) -> None:
        typed("persona", "create", "--name", "Ana", "--wants", "x")
        typed("persona", "update", "Ana", "--file", "-", stdin="wants: null\nknows: y\n")
        assert yaml.safe_load(typed("persona", "show", "Ana").out) == {
            "kind": "persona",
            "name": "Ana",
            "knows": "y",
        }

    def test_mistakes_have_their_line(self, typed: Typed) -> None:
        told = typed("persona", "create", "--file", "-", stdin="name: Ana\nwnts: x\n", code=2).err
        assert told == 'Error: stdin:2: persona "Ana": wnts: unknown key; did you mean wants?\n'

    def test_another_kind_is_refused(self, typed: Typed) -> None:
        told = typed("persona", "create", "--file", "-", stdin="\nkind: eval\nname: x\n", code=2).err
        assert told == "Error: stdin:2: this is of kind eval, not persona\n"

    def test_an_update_of_nothing(self, typed: Typed) -> None:
        assert "nothing to change" in typed("eval", "update", "First eval", code=2).err


class TestScenarios:
    def test_from_options(self, typed: Typed) -> None:
        typed("persona", "create", "--name", "Ana")
        entry = "regex={pattern: 'a=b'}"
        options = ["--say", "hi", "--say", "12:30", "--evaluator", entry, "--evaluator", "greets-first"]
        typed(
            "scenario",
            "create",
            "--name",
            "S",
            *options,
            "--persona",
            "ana",
            "--tag",
            "t",
            "--max-messages",
            "6",
        )
        assert yaml.safe_load(typed("scenario", "show", "S").out) == {
            "kind": "scenario",
            "name": "S",
            "script": ["hi", "12:30"],
            "maxMessages": 6,
            "evaluators": [{"type": "regex", "config": {"pattern": "a=b"}}, {"type": "greets-first"}],
            "personas": ["Ana"],
            "tags": ["t"],
        }
        assert "regex, greets-first" in typed("scenario", "list").out

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (["--say", "hi"], "nothing judges this scenario"),
            (
                ["--say", "hi", "--evaluator", "regx"],
                'evaluators[0].type: no evaluator is called "regx"; did you mean',
            ),
            (["--say", "hi", "--evaluator", "regex={patern: x}"], "evaluators[0].config"),
            (["--say", "hi", "--evaluator", "greets-first", "--persona", "Bob"], 'no persona called "Bob"'),
            (
                ["--say", "hi", "--evaluator", "greets-first", "--cases", "../x.csv"],
                "leads out of the project",
            ),
        ],
    )
    def test_what_cannot_run_is_refused(self, typed: Typed, options: list[str], expected: str) -> None:
        told = typed("scenario", "create", "--name", "S", *options, code=2).err
        assert expected in told
        assert "Traceback" not in told

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (["--evaluator", "greets-first"], "nobody can speak first"),
            (["--say", "hi", "--success", "It is fine"], "needs a language model"),
        ],
    )
    def test_what_needs_a_model_is_saved_without_one_and_says_so_when_it_is_run(
        self, typed: Typed, options: list[str], expected: str
    ) -> None:
        typed("scenario", "create", "--name", "S", *options)
        typed("eval", "create", "--name", "E", "--scenario", "S", "--connector", "My agent")
        assert f'scenario "S": {expected}' in typed("eval", "run", "E", code=2).err.replace('"criteria" ', "")

    def test_json_lines_out_and_in(self, typed: Typed) -> None:
        typed("scenario", "update", "Opening hours", "--tag", "x")
        assert typed("scenario", "export", "all.jsonl").out == "1 scenarios in all.jsonl\n"
        lines = Path("all.jsonl").read_text()
        assert json.loads(lines)["name"] == "Opening hours"
        assert typed("scenario", "export", "-", "--tag", "y").out == ""
        Path("all.jsonl").write_text(lines + lines.replace("Opening hours", "Öffnungszeiten") + "\n")
        assert typed("scenario", "import", "all.jsonl", "--dry-run").out.startswith(
            "+ scenario Öffnungszeiten"
        )
        assert typed("scenario", "import", "all.jsonl").out == "+ scenario Öffnungszeiten\n1 added.\n"
        assert typed("scenario", "import", "all.jsonl", "--json").data == {"applied": True, "changes": []}

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("", "x.jsonl: has no scenarios"),
            ('{"name": "S"}\n', 'x.jsonl:1: scenario "S": nothing judges'),
            ('\n{"name": "S",}\n', "x.jsonl:2:"),
            ('{"kind": "persona", "name": "P"}\n', 'x.jsonl:1: persona "P": is not a scenario'),
            ("5\n", "x.jsonl:1: expected definitions"),
        ],
    )
    def test_a_bad_line_is_named(self, typed: Typed, content: str, expected: str) -> None:
        Path("x.jsonl").write_text(content)
        assert expected in typed("scenario", "import", "x.jsonl", code=2).err


class TestConnectors:
    def test_from_options(self, typed: Typed) -> None:
        options = [
            "--type",
            "http",
            "--base-url",
            "http://127.0.0.1:9/v1",
            "--header",
            "X-Api-Key: ${AGENT_KEY}",
        ]
        typed(
            "connector",
            "create",
            "--name",
            "Web",
            *options,
            "--set",
            "path=/chat",
            "--set",
            "timeoutSeconds=2",
        )
        found = yaml.safe_load(typed("connector", "show", "Web").out)
        assert found["headers"] == {"X-Api-Key": "${AGENT_KEY}"}
        assert found["config"] == {"path": "/chat", "timeoutSeconds": 2}
        assert "http://127.0.0.1:9/v1" in typed("connector", "list").out
        typed("connector", "delete", "Web", "--yes")

    def test_types_are_listed_with_those_of_plugins(self, typed: Typed) -> None:
        assert "my-agent" in typed("connector", "types").out
        assert {"http", "openai", "my-agent"} <= {
            item["type"] for item in typed("connector", "types", "--json").data
        }

    def test_an_agent_that_answers(self, typed: Typed) -> None:
        assert "It answers, in " in typed("connector", "test", "my agent").out
        found = typed("connector", "test", "My agent", "--json").data
        assert found["success"] is True
        assert found["response"].startswith("Hello!")

    def test_an_agent_that_does_not(self, typed: Typed) -> None:
        typed("connector", "create", "--name", "Web", "--type", "http", "--base-url", "http://127.0.0.1:9")
        assert "It does not answer" in typed("connector", "test", "Web", code=1).out
        found = typed("connector", "test", "Web", "--json", code=1).data
        assert (found["success"], found["response"]) == (False, None)
        assert "refused the connection" in found["error"]

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (["--type", "htp"], 'no connector type is called "htp"; did you mean http'),
            (["--type", "http"], "baseUrl: a connector of type http needs the agent's address"),
            (
                ["--type", "http", "--base-url", "nope"],
                'baseUrl: "nope" is no address; it needs a scheme and a host',
            ),
            (["--type", "http", "--set", "pathh=x"], "config.pathh: unknown key; did you mean path"),
            (["--type", "http", "--set", "nonsense"], "--set takes key=value"),
            (["--type", "http", "--base-url", "https://u:pw@host"], "baseUrl: holds a literal secret"),
            ([], "type: is missing"),
        ],
    )
    def test_what_is_wrong_is_said(self, typed: Typed, options: list[str], expected: str) -> None:
        assert expected in typed("connector", "create", "--name", "C", *options, code=2).err


class TestEvals:
    def test_from_options_by_name_or_id(self, typed: Typed) -> None:
        connector = typed("connector", "show", "My agent", "--json").data
        typed("eval", "create", "--name", "E", "--scenario", "opening HOURS", "--connector", connector["id"])
        typed("eval", "update", "E", "--repetitions", "3")
        assert yaml.safe_load(typed("eval", "show", "E").out) == {
            "kind": "eval",
            "name": "E",
            "scenarios": ["Opening hours"],
            "connectors": ["My agent"],
            "repetitions": 3,
        }
        assert "Opening hours" in typed("eval", "list").out
        typed("eval", "delete", "E", "--yes")

    def test_what_is_used_cannot_go(self, typed: Typed) -> None:
        told = typed("scenario", "delete", "Opening hours", "--yes", code=2).err
        assert (
            told == 'Error: The scenario "Opening hours" is used by "First eval". Take it out there first.\n'
        )

    def test_deleting_asks(self, typed: Typed) -> None:
        assert (
            'Delete the eval "First eval"? Nobody can answer here'
            in typed("eval", "delete", "First eval", code=2).err
        )
        assert len(typed("eval", "list", "--json").data) == 1

    @pytest.mark.parametrize(("answer", "left"), [("n\n", 1), ("y\n", 0)])
    def test_on_a_terminal_the_answer_counts(self, typed: Typed, answer: str, left: int) -> None:
        asked = typed("eval", "delete", "First eval", stdin=Terminal(answer), code=left)
        assert 'Delete the eval "First eval"? [y/N]' in asked.err
        assert len(typed("eval", "list", "--json").data) == left

    def test_an_eval_of_nothing(self, typed: Typed) -> None:
        told = typed("eval", "create", "--name", "E", "--connector", "My agent", code=2).err
        assert "scenarios: is missing" in told
