"""Files of definitions: every way to write them, and every way to get them wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstudio.base.files import parse_text
from evalstudio.base.problems import InvalidInput
from evalstudio.project.changes import read_files
from evalstudio.project.documents import Document

PERSONA = "kind: persona\nname: Ana\n"
JUDGED = "evaluators: [{type: regex, config: {pattern: x}}]"


def write(folder: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def read(folder: Path, **files: str | bytes) -> list[Document]:
    return read_files([write(folder, **files)])


def complaint(folder: Path, **files: str | bytes) -> str:
    with pytest.raises(InvalidInput) as caught:
        read(folder, **files)
    return str(caught.value).replace(f"{folder}/", "")


def plain(text: str) -> Any:
    return parse_text(text, "x.yaml", is_json=False)[0].data


class TestWaysToWriteThem:
    def test_one_per_file_with_its_kind(self, tmp_path: Path) -> None:
        assert read(tmp_path, a__yaml=PERSONA)[0].key == ("persona", "ana")

    def test_many_in_lists_by_kind(self, tmp_path: Path) -> None:
        text = f"personas: [{{name: A}}, {{name: B}}]\nscenarios:\n- {{name: S, {JUDGED}}}\nevals:\n"
        assert [d.name for d in read(tmp_path, a__yml=text)] == ["A", "B", "S"]

    def test_several_documents_in_one_file(self, tmp_path: Path) -> None:
        text = f"---\n{PERSONA}---\n# nothing here\n---\npersonas: [{{name: B}}]\n...\n"
        assert [d.name for d in read(tmp_path, a__yaml=text)] == ["Ana", "B"]

    def test_a_list_of_definitions_in_json(self, tmp_path: Path) -> None:
        listed = json.dumps([{"kind": "persona", "name": "A"}, {"personas": [{"name": "B"}]}])
        assert [d.name for d in read(tmp_path, a__json=listed)] == ["A", "B"]

    def test_json_with_tabs_escapes_and_exponents_is_read_as_json(self, tmp_path: Path) -> None:
        text = (
            '{\n\t"kind":\t"scenario",\n\t"name": "\\ud83d\\ude00 \\/",\n\t"groundTruth": 1e5,\n\t'
            '"script": ["a\\tb"],\n\t"evaluators": [{"type":"regex"}]}'
        )
        found = read(tmp_path, a__json=text)[0]
        assert (found.name, found.body["groundTruth"], found.body["script"]) == ("😀 /", 100000.0, ["a\tb"])

    def test_a_byte_order_mark_does_not_matter(self, tmp_path: Path) -> None:
        persona = '{"kind": "persona", "name": "B"}'
        found = read(tmp_path, a__yaml=b"\xef\xbb\xbf" + PERSONA.encode(), b__json=f"\ufeff{persona}")
        assert [d.name for d in found] == ["Ana", "B"]

    def test_a_schema_for_the_editor_is_left_out(self, tmp_path: Path) -> None:
        text = '{"$schema": "./definitions.schema.json", "personas": [{"name": "A"}]}'
        assert [d.name for d in read(tmp_path, a__json=text)] == ["A"]

    def test_a_folder_is_read_to_the_bottom_without_what_is_hidden(self, tmp_path: Path) -> None:
        deep = tmp_path / "deep" / "down"
        write(deep, a__yaml=PERSONA)
        write(tmp_path / ".git", b__yaml="kind: persona\nname: Hidden\n")
        write(tmp_path, readme__md="# no definitions")
        (tmp_path / "evalstudio.config.json").write_text("{}")
        assert [d.name for d in read_files([tmp_path])] == ["Ana"]

    def test_a_file_named_twice_is_read_once(self, tmp_path: Path) -> None:
        write(tmp_path, a__yaml=PERSONA)
        assert len(read_files([tmp_path, tmp_path / "a.yaml"])) == 1

    def test_names_of_any_script(self, tmp_path: Path) -> None:
        assert read(tmp_path, a__yaml="kind: persona\nname: 李雷 Ünïcødé 🙂\n")[0].name == "李雷 Ünïcødé 🙂"

    def test_defaults_written_out_are_no_different_from_defaults(self, tmp_path: Path) -> None:
        text = f"kind: scenario\nname: S\nstopOnFailure: true\nmaxMessages: 10\nscript: []\n{JUDGED}\n"
        body = read(tmp_path, a__yaml=text)[0].body
        assert "stopOnFailure" not in body
        # An explicit limit is more than a default: it stands whatever the project's default is.
        assert body["maxMessages"] == 10


class TestWhatYamlWordsMean:
    @pytest.mark.parametrize(
        "text",
        ["no", "yes", "on", "Off", "12:30", "2024-01-01", "007", "1_000", ".nan", ".inf", "0b1", "0x"],
    )
    def test_what_only_looks_odd_stays_text(self, text: str) -> None:
        assert plain(f"a: {text}")["a"] == text

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("true", True),
            ("False", False),
            ("~", None),
            ("null", None),
            ("", None),
            ("0", 0),
            ("-12", -12),
            ("0x1F", 31),
            ("0o17", 15),
            ("1.5", 1.5),
            ("1e5", 1e5),
            ("'1'", "1"),
            ('"true"', "true"),
            ("!!str 5", "5"),
            ("! 5", "5"),
            ("!!int 5", 5),
        ],
    )
    def test_numbers_and_truth_are_what_they_are(self, text: str, value: object) -> None:
        found = plain(f"a: {text}")["a"]
        assert (found, type(found)) == (value, type(value))

    def test_keys_are_text(self) -> None:
        assert plain("{1: a, true: b, null: c}") == {"1": "a", "true": "b", "null": "c"}

    def test_aliases_and_merge_keys(self) -> None:
        text = "base: &b {x: 1, y: 2}\nmore: &m {z: 3, x: 9}\nown: {<<: [*b, *m], y: 5}\nsame: *b\n'<<': 1\n"
        found = plain(text)
        assert found["own"] == {"x": 1, "y": 5, "z": 3}
        assert found["same"] == {"x": 1, "y": 2}
        assert found["<<"] == 1


class TestMistakesAreNamedByFileAndLine:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a: [1, 2\n", "a.yaml:2:1: not valid YAML:"),
            ("a:\n\t- 1\n", "a.yaml:2:1: not valid YAML: indent with spaces, not with tabs"),
            ('kind: persona\nname: "x\x07"\n', 'a.yaml:2: holds the character U+0007; write it as "\\u0007"'),
            ("kind: persona\nname: x\nkind: eval\n", 'a.yaml:3: the key "kind" is given twice'),
            ("a: *nope\n", "a.yaml:1: *nope has no &nope before it"),
            ("a: &x [*x]\n", "a.yaml:1: *x has no &x before it"),
            ("? [a]\n: 1\n", "a.yaml:1: a key must be a plain word"),
            ("a:\n  <<: 5\n", "a.yaml:2: << takes a mapping"),
            (
                "a: !!python/object:os.system x\n",
                "a.yaml:1: the tag tag:yaml.org,2002:python/object:os.system",
            ),
            ("a: !!int x\n", "a.yaml:1: invalid literal"),
            ("a: 99999999999999999999\n", "a.yaml:1: this number is too large"),
            ("a: 1e999\n", "a.yaml:1: a number must be finite"),
            ("[" * 100_000, "a.yaml:1: nested too deeply"),
            ("just text\n", "a.yaml:1: expected definitions, found 'just text'"),
            ("kind: scenari\n", 'a.yaml:1: kind: "scenari" is not one of'),
            ("kind: [1]\n", "is not one of persona, connector, scenario, eval"),
            ("name: x\nscript: []\n", "a.yaml:1: name: unknown key; give a kind, or lists of personas"),
            ("\nscenaros: []\n", "a.yaml:2: scenaros: unknown key; did you mean scenarios"),
            ("personas: {name: x}\n", "a.yaml:1: personas: expected a list"),
            ("personas:\n- name: A\n- 5\n", "a.yaml:3: persona: expected named settings, found 5"),
            ("personas:\n- description: x\n", "a.yaml:2: persona: name: is missing"),
            ("personas: [{name: ''}]\n", "a.yaml:1: persona: name:"),
            ("personas: [{name: 5}]\n", "persona: name: expected text, found 5; put it in quotes"),
        ],
    )
    def test_in_yaml(self, tmp_path: Path, text: str, expected: str) -> None:
        assert expected in complaint(tmp_path, a__yaml=text)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", "a.json:1:1: not valid JSON: the file is empty"),
            ('{"a": [1,\n 2,]}', "a.json:2:4: not valid JSON: Expecting value"),
            ('{"kind": "persona",\n"name": "x",\n"name": "y"}', 'a.json:3: the key "name" is given twice'),
            ('{"a": NaN}', "not valid JSON: NaN is not a number JSON knows"),
            ('{"a":\n"\\ud800"}', "a.json:2: holds half of a surrogate pair"),
            ('{"a":\n99999999999999999999}', "a.json:2: this number is too large"),
            ("[" * 100_000, "a.json: nested too deeply"),
            ("[" * 500 + "]" * 500, "a.json:1: nested too deeply"),
            (
                '[\n{"kind": "persona",\n"nme": "x"}]',
                "a.json:3: persona: nme: unknown key; did you mean name?",
            ),
        ],
    )
    def test_in_json(self, tmp_path: Path, text: str, expected: str) -> None:
        assert expected in complaint(tmp_path, a__json=text)

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("maxMesages: 3", 'a.yaml:5: scenario "S": maxMesages: unknown key; did you mean maxMessages'),
            (
                "maxMessages: many",
                'a.yaml:5: scenario "S": maxMessages: expected a whole number, found "many"',
            ),
            ("max_messages: many", 'a.yaml:5: scenario "S": max_messages: expected a whole number'),
            ("maxMessages: 0", "maxMessages: must be greater than or equal to 1"),
            ("script: hello", 'script: expected a list, found "hello"'),
            (
                "script: [a,\n    5]",
                'a.yaml:6: scenario "S": script[1]: expected text, found 5; put it in quotes',
            ),
            ("script: ['']", "script[0]: a message of the script must not be blank"),
            ("cases: [{vars: [1]}]", "cases[0].vars: expected named settings, found [1]"),
            ("cases: 5", "cases: expected a list or text, found 5"),
            ("messages: [{role: user, content: 5}]", "messages[0].content: expected text or a list, found 5"),
            ("context: [1]", "context: expected named settings"),
            ("stopOnFailure: maybe", 'stopOnFailure: expected true or false, found "maybe"'),
            ("personaIds: [x]", "personaIds: files refer by name; write personas: [name of a persona, …]"),
            ("persona_ids: [x]", "persona_ids: files refer by name"),
            ("personas: [A, a]", 'personas[1]: "a" is named twice'),
            ("personas: A", 'personas: expected a list, found "A"'),
            ("criteria: [{nme: x}]", "criteria[0].name: is missing"),
        ],
    )
    def test_deep_inside_a_scenario(self, tmp_path: Path, line: str, expected: str) -> None:
        text = f"# a comment\nscenarios:\n  - name: S\n    {JUDGED}\n    {line}\n"
        assert expected in complaint(tmp_path, a__yaml=text)

    @pytest.mark.parametrize(
        ("entry", "expected"),
        [
            ("- regex", 'a.yaml:4: scenario "S": evaluators[0]: expected named settings, found "regex"'),
            (
                "- type: regex\n  confg: {}",
                'a.yaml:5: scenario "S": evaluators[0].confg: unknown key; did you mean',
            ),
            ("- type: 5", "evaluators[0].type: expected text, found 5"),
            ("- type: x\n  gate: often", "evaluators[0].gate: must be 'always', 'eventually' or 'finally'"),
            ("- config: {}", "evaluators[0].type: is missing"),
        ],
    )
    def test_in_an_evaluators_entry(self, tmp_path: Path, entry: str, expected: str) -> None:
        found = complaint(tmp_path, a__yaml=f"kind: scenario\nname: S\nevaluators:\n{entry}\n")
        assert expected in found
        assert "problems:" not in found

    def test_a_scenario_nothing_judges(self, tmp_path: Path) -> None:
        assert 'scenario "S": nothing judges this scenario' in complaint(
            tmp_path, a__yaml="kind: scenario\nname: S\nscript: [hi]\n"
        )

    @pytest.mark.parametrize("field", ["connectorId: X", "connector_id: X", "connectorIds: [X]"])
    def test_an_eval_refers_by_name(self, tmp_path: Path, field: str) -> None:
        text = f"kind: eval\nname: E\nscenarios: [S]\n{field}\n"
        assert "files refer by name; write connectors: [name of a connector, …]" in complaint(
            tmp_path, a__yaml=text
        )

    def test_all_of_them_are_told_at_once(self, tmp_path: Path) -> None:
        found = complaint(tmp_path, a__yaml="a: [", b__json="{", c__yaml="x: 1\n", d__yaml=PERSONA)
        assert found.startswith("3 problems:\n  a.yaml")
        assert [part in found for part in ("b.json:1:2", "c.yaml:1: x: unknown key")] == [True, True]

    def test_a_flood_of_them_is_cut_short(self, tmp_path: Path) -> None:
        found = complaint(tmp_path, a__yaml="personas:\n" + "- 5\n" * 1000)
        assert found.endswith("and 950 more")
        assert len(found.splitlines()) == 52

    def test_the_same_name_in_two_files_in_any_case(self, tmp_path: Path) -> None:
        found = complaint(tmp_path, a__yaml=PERSONA, b__yaml="\nkind: persona\nname: ANA\n")
        assert found == 'b.yaml:2: persona "ANA": is also defined at a.yaml:1'

    def test_the_value_of_a_secret_is_not_repeated(self, tmp_path: Path) -> None:
        text = "kind: connector\nname: C\ntype: http\nheaders: {Authorization: 12345678}\n"
        found = complaint(tmp_path, a__yaml=text)
        assert "headers.Authorization: expected text" in found
        assert "12345678" not in found

    def test_a_bomb_of_aliases_is_defused(self, tmp_path: Path) -> None:
        lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
        assert "a.yaml: stands for more than 500,000 values" in complaint(tmp_path, a__yaml="\n".join(lines))

    def test_a_bomb_of_merge_keys_is_defused(self, tmp_path: Path) -> None:
        lines = ["a0: &a0 {x: 1}"]
        lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 30)]
        assert "stands for more than 500,000 values" in complaint(tmp_path, a__yaml="\n".join(lines))

    def test_a_file_that_is_too_large(self, tmp_path: Path) -> None:
        found = complaint(tmp_path, a__yaml=b"#" * 20_000_001)
        assert "a.yaml: is larger than 20 MB; keep many cases in a CSV or JSONL file" in found

    def test_json_with_endless_values(self, tmp_path: Path) -> None:
        assert "holds more than 500,000 values" in complaint(tmp_path, a__json="[" + "0," * 500_001 + "0]")

    def test_text_that_is_not_utf_8(self, tmp_path: Path) -> None:
        assert "a.yaml:2: not UTF-8 text" in complaint(tmp_path, a__yaml=b"kind: persona\nname: \xff\n")

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("nope", "nope: no such file or folder"),
            ("a.txt", "a.txt: definitions are read from .yaml, .yml, .json"),
        ],
    )
    def test_a_path_that_is_none(self, tmp_path: Path, name: str, expected: str) -> None:
        (tmp_path / "a.txt").write_text("x")
        with pytest.raises(InvalidInput, match=expected):
            read_files([tmp_path / name])

    @pytest.mark.parametrize("content", ["", "# nothing\n", "personas: []\n"])
    def test_a_folder_without_definitions(self, tmp_path: Path, content: str) -> None:
        assert "there are no definitions in" in complaint(tmp_path, a__yaml=content)
