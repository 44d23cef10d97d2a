"""Cases of a scenario, listed or from a file of the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstudio import Scenario
from evalstudio.base.problems import InvalidInput
from evalstudio.conversation.definitions import Case
from evalstudio.project import validation as cases_module
from evalstudio.project.validation import cases_of


def scenario(cases: str | list[dict[str, object]]) -> Scenario:
    return Scenario.model_validate(
        {"name": "S", "script": ["hi"], "evaluators": [{"type": "regex"}], "cases": cases}
    )


def read(folder: Path, name: str, content: str | bytes) -> list[Case]:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return cases_of(scenario(name), folder)


def complaint(folder: Path, name: str, content: str | bytes) -> str:
    with pytest.raises(InvalidInput) as caught:
        read(folder, name, content)
    return str(caught.value)


def test_columns_are_values_but_for_those_of_a_case(tmp_path: Path) -> None:
    text = 'name,day,people,groundTruth,context\nfirst,Monday,2,closed,"{""vip"": true}"\n,"Tue,\nsday",3,,\n'
    first, second = read(tmp_path, "c.csv", text)
    assert (first.name, first.vars, first.ground_truth) == (
        "first",
        {"day": "Monday", "people": "2"},
        "closed",
    )
    assert first.context == {"vip": True}
    assert (second.name, second.vars, second.ground_truth) == (
        None,
        {"day": "Tue,\nsday", "people": "3"},
        None,
    )


def test_blanks_around_the_names_of_columns_do_not_matter(tmp_path: Path) -> None:
    (case,) = read(tmp_path, "c.csv", "name, day ,\tgroundTruth\nfirst,Monday,closed\n")
    assert (case.name, case.vars, case.ground_truth) == ("first", {"day": "Monday"}, "closed")


def test_json_lines_keep_their_types(tmp_path: Path) -> None:
    text = '{"name": "a", "people": 2, "vars": {"day": "Mon"}, "groundTruth": [1]}\n\n{"x": null}\r\n'
    first, second = read(tmp_path, "c.jsonl", text)
    assert (first.vars, first.ground_truth) == ({"people": 2, "day": "Mon"}, [1])
    assert second.vars == {"x": None}


@pytest.mark.parametrize("odd", ["a\u2028b", "a\x0bb", "a\x1cb", "a\x85b", "🙂"])
def test_odd_line_separators_do_not_split_a_row(tmp_path: Path, odd: str) -> None:
    assert read(tmp_path, "c.csv", f"x,y\n{odd},1\n")[0].vars == {"x": odd, "y": "1"}
    assert read(tmp_path, "c.jsonl", f'{{"x": "{odd}"}}\n'.replace("\x0b", "").replace("\x1c", ""))[0].vars


def test_a_byte_order_mark_and_blank_lines_do_not_matter(tmp_path: Path) -> None:
    assert read(tmp_path, "c.csv", "\ufeffx\r\n1\r\n\r\n2\r\n")[1].vars == {"x": "2"}


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("c.csv", "x,y\n1\n", "c.csv:2: has 1 cells, the header 2"),
        ("c.csv", "x,y\n1,2,3\n", "c.csv:2: has 3 cells, the header 2"),
        ("c.csv", "x,x\n1,2\n", "c.csv:1: every column needs a name of its own"),
        ("c.csv", "x, x\n1,2\n", "c.csv:1: every column needs a name of its own"),
        ("c.csv", "x,\n1,2\n", "c.csv:1: every column needs a name of its own"),
        ("c.csv", 'x\n"a"b\n', "c.csv:2: not valid CSV:"),
        ("c.csv", "context\nnope\n", "c.csv:2:1: not valid JSON"),
        ("c.csv", "context\n[1]\n", "c.csv:2: context: expected named settings, found [1]"),
        ("c.csv", "", "c.csv: has no cases"),
        ("c.csv", "x\n", "c.csv: has no cases"),
        ("c.csv", "name\na\na\n", 'c.csv: two cases are called "a"'),
        ("c.csv", b"x\n\xff\n", "c.csv:2: not UTF-8 text"),
        ("c.jsonl", '{"a": 1}\n{"a": \n', "c.jsonl:2:7: not valid JSON"),
        ("c.jsonl", "[1]\n", "c.jsonl:1: expected an object"),
        ("c.jsonl", '{"vars": 5}\n', "c.jsonl:1: vars: expected named settings, found 5"),
        ("c.jsonl", '{"name": 5}\n', "c.jsonl:1: name: expected text"),
        ("c.jsonl", '{"a": NaN}\n', "c.jsonl:1: not valid JSON"),
        ("c.jsonl", '{"a": 1, "a": 2}\n', 'c.jsonl:1: the key "a" is given twice'),
        ("c.txt", "x", "c.txt: cases are read from .csv, .jsonl, .ndjson files"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    tmp_path: Path, name: str, content: str | bytes, expected: str
) -> None:
    assert expected in complaint(tmp_path, name, content)


@pytest.mark.parametrize("name", ["../outside.csv", "/etc/passwd", "inner/../../outside.csv", "link.csv"])
def test_a_path_out_of_the_project_is_refused(tmp_path: Path, name: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "outside.csv").write_text("x\n1\n")
    (project / "link.csv").symlink_to(tmp_path / "outside.csv")
    with pytest.raises(InvalidInput, match="leads out of the project folder"):
        cases_of(scenario(name), project)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("nope.csv", "no such file"), ("a\x00b.csv", "not a usable path"), ("d.csv", "cannot be")],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, expected: str) -> None:
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(InvalidInput, match=expected):
        cases_of(scenario(name), tmp_path)


def test_there_is_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases_module, "MOST_CASES", 2)
    assert len(read(tmp_path, "c.csv", "x\n1\n2\n")) == 2
    assert "has more than 2 cases" in complaint(tmp_path, "c.csv", "x\n1\n2\n3\n")


def test_listed_cases_have_names_of_their_own(tmp_path: Path) -> None:
    assert len(cases_of(scenario([{"name": "a"}, {}]), tmp_path)) == 2
    with pytest.raises(InvalidInput, match='cases: two cases are called "case 2"'):
        cases_of(scenario([{"name": "case 2"}, {}]), tmp_path)
