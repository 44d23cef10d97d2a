"""``evalstudio evaluators``, and what every command shares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import evalstudio
from tests.support.plugin_files import write_project
from typer.testing import CliRunner

from evalstudio import create_registry
from evalstudio.cli.app import app_for
from evalstudio.cli.evaluators import fields_of
from evalstudio.version import __version__

BUILT_IN = [item["type"] for item in create_registry().list_evaluator_types()]

PLUGIN = """
from pydantic import BaseModel, Field
from evalstudio import define_evaluator, EvaluatorContext


class Config(BaseModel):
    share: float = Field(gt=0, le=1, description="How much [of it] counts")
    words: list[str] = Field(min_length=1)
    mode: str | None = None


@define_evaluator(description="Says [bold]nothing[/bold] of markup, über alles")
def own_check(ctx: EvaluatorContext[Config]) -> bool:
    return True


@define_evaluator(kind="metric")
def own_metric(ctx) -> int:
    return 1


@define_evaluator(config={"type": "object", "properties": {"n": {"const": 4}}, "required": ["n", "ghost"]})
def from_schema(ctx) -> int:
    return 1
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path / "p", ["./own.py"], {"own.py": PLUGIN})


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app_for(None), arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_version_is_shown() -> None:
    assert run("--version") == f"evalstudio {__version__}\n"


def test_help_imports_nothing_the_commands_need() -> None:
    import subprocess
    import sys

    code = (
        "import sys; sys.argv = ['evalstudio', '--help']\n"
        "from evalstudio.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "names = ('evalstudio.plugins', 'evalstudio.evaluators', 'orjson', 'yaml', 'jsonschema_rs')\n"
        "print([name for name in names if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_the_list_has_every_type_by_kind() -> None:
    shown = run("evaluators", "list")
    assert all(name in shown for name in BUILT_IN)
    assert shown.index("Assertions") < shown.index("Metrics") < shown.index("token-usage")


def test_the_list_fits_80_columns_when_piped(tmp_path: Path) -> None:
    done = evalstudio("evaluators", "list", cwd=tmp_path)
    assert done.returncode == 0
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert "\x1b" not in done.stdout
    assert all(name in done.stdout for name in BUILT_IN)


def test_the_list_survives_a_terminal_without_unicode(tmp_path: Path, project: Path) -> None:
    done = evalstudio(
        "evaluators", "list", "--config", str(project), cwd=tmp_path, PYTHONIOENCODING="ascii", PYTHONUTF8="0"
    )
    assert done.returncode == 0, done.stderr
    assert "own-check" in done.stdout


def test_the_json_list_is_the_registrys() -> None:
    assert json.loads(run("evaluators", "list", "--json")) == create_registry().list_evaluator_types()


def test_json_is_neither_wrapped_nor_coloured(tmp_path: Path) -> None:
    done = evalstudio("evaluators", "list", "--json", cwd=tmp_path, FORCE_COLOR="1", COLUMNS="20")
    assert "\x1b" not in done.stdout
    assert len(json.loads(done.stdout)) == len(BUILT_IN)


def test_plugin_evaluators_are_listed_with_their_source(project: Path) -> None:
    shown = run("evaluators", "list", "--config", str(project))
    assert "own-check" in shown
    assert "./own.py" in shown
    assert "[bold]nothing[/bold]" in shown


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_is_shown_with_an_entry_that_validates(name: str) -> None:
    shown = json.loads(run("evaluators", "show", name, "--json"))
    example = shown["example"]
    assert example["type"] == name
    definition = create_registry().get_evaluator(name)
    assert definition is not None
    definition.use(example.get("config"))
    text = run("evaluators", "show", name)
    assert json.dumps(name) in text
    for field in shown["configSchema"].get("properties", {}):
        assert field in text


def test_a_plugins_config_is_shown_as_it_is(project: Path) -> None:
    text = run("evaluators", "show", "own-check", "--config", str(project))
    assert "How much [of it] counts" in text
    assert "required" in text
    assert "list of string" in text
    entry = json.loads(text[text.index("{") :])
    assert entry == {"type": "own-check", "config": {"share": 0.5, "words": ["text"]}}


def test_an_evaluator_without_config_says_so(project: Path) -> None:
    assert "It takes no config." in run("evaluators", "show", "own-metric", "--config", str(project))


def test_a_raw_schema_has_an_example_too(project: Path) -> None:
    shown = json.loads(run("evaluators", "show", "from-schema", "--json", "--config", str(project)))
    assert shown["example"]["config"]["n"] == 4


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("regx", "Did you mean regex"),
        ("token_usage", "token-usage"),
        ("LATENCY", "latency"),
        ("zzz", 'See "evalstudio evaluators list"'),
        ("", 'See "evalstudio evaluators list"'),
        ("🙂", 'There is no evaluator of type "🙂"'),
    ],
)
def test_an_unknown_type_suggests_close_ones(tmp_path: Path, asked: str, expected: str) -> None:
    done = evalstudio("evaluators", "show", asked, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_command_is_exit_code_2(tmp_path: Path) -> None:
    assert evalstudio("evaluatorz", cwd=tmp_path).returncode == 2


def test_a_pipe_that_closes_early_is_no_error(tmp_path: Path) -> None:
    import subprocess

    from tests.support.command_line import COMMAND

    command = f"{COMMAND} evaluators list --json | head -c 10"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, []),
        ({"properties": {"a": True}}, [("a", "any", "")]),
        (
            {"properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]},
            [("a", "string", "required")],
        ),
        ({"properties": {"a": {"enum": ["x", 1]}}}, [("a", '"x", 1', "")]),
        (
            {"properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 0}}},
            [("a", "integer", "0")],
        ),
        (
            {
                "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/A"}}},
                "$defs": {"A": {"type": "object", "properties": {"b": {"type": "number"}}}},
            },
            [("a", "list of object", ""), ("a[].b", "number", "")],
        ),
        ({"properties": {"a": {"$ref": "#/nowhere"}}}, [("a", "any", "")]),
        (
            {"properties": {"a": {"type": "string", "default": "x" * 99}}},
            [("a", "string", '"' + "x" * 38 + "…")],
        ),
    ],
)
def test_a_schema_is_told_field_by_field(
    schema: dict[str, Any], expected: list[tuple[str, str, str]]
) -> None:
    assert [(field.path, field.type, field.default) for field in fields_of(schema)] == expected


def test_a_schema_that_holds_itself_is_told_to_a_depth() -> None:
    node = {"type": "object", "properties": {"child": {"$ref": "#/$defs/N"}}}
    assert len(fields_of({"$ref": "#/$defs/N", **node, "$defs": {"N": node}})) < 10
