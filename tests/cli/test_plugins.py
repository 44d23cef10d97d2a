"""``evalstudio plugins``, and what the command line says of broken plugins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.command_line import evalstudio
from tests.support.plugin_files import BROKEN, broken_plugins, evaluator_source, write_project


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_plugin_gives_one_message_and_exit_code_2(tmp_path: Path, kind: str) -> None:
    config, expected = broken_plugins(tmp_path)[kind]
    done = evalstudio("evaluators", "list", "--json", cwd=config.parent)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert "\nError: " not in done.stderr
    assert "Traceback" not in done.stderr
    for part in expected:
        assert part in done.stderr


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{", "not valid JSON"),
        ('{"plugin": []}', "plugin: unknown key"),
        ('{"plugins": 5}', "plugins: expected a list"),
        ("", "the file is empty"),
    ],
)
def test_a_bad_config_gives_one_message_and_exit_code_2(tmp_path: Path, content: str, expected: str) -> None:
    (tmp_path / "evalstudio.config.json").write_text(content)
    done = evalstudio("plugins", "list", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_a_config_that_is_not_there(tmp_path: Path) -> None:
    done = evalstudio("plugins", "list", "--config", "nope.json", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "Error: nope.json: no such file\n")


def test_the_list_names_what_each_plugin_brings(tmp_path: Path) -> None:
    write_project(tmp_path, ["./a.py"], {"a.py": evaluator_source("a_check")})
    inner = tmp_path / "deep" / "down"
    inner.mkdir(parents=True)
    shown = evalstudio("plugins", "list", cwd=inner)
    assert shown.returncode == 0
    assert "./a.py" in shown.stdout
    assert "a-check" in shown.stdout
    listed = json.loads(evalstudio("plugins", "list", "--json", cwd=inner).stdout)
    assert listed == [
        {"name": "./a.py", "path": str(tmp_path / "a.py"), "evaluators": ["a-check"], "connectors": []}
    ]


def test_without_a_config_there_are_none(tmp_path: Path) -> None:
    assert evalstudio("plugins", "list", "--json", cwd=tmp_path).stdout == "[]\n"
    assert evalstudio("plugins", "list", cwd=tmp_path).stdout.startswith("No plugins.")


def test_what_a_plugin_prints_does_not_spoil_the_json(tmp_path: Path) -> None:
    source = "print('hello from the plugin')\n" + evaluator_source("a_check")
    write_project(tmp_path, ["./a.py"], {"a.py": source})
    done = evalstudio("plugins", "list", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)[0]["evaluators"] == ["a-check"]
    assert "hello from the plugin" in done.stderr
