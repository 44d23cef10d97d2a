"""Escapes for terminals in names, answers, files and arguments: nothing that is printed carries them on."""

from __future__ import annotations

import json
import logging
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import evalstudio
from tests.support.projects import apply_project, make_project, scripted

from evalstudio.cli.output import PlainFormatter, escaped_json, open_console, printable

# Clears the screen; sets the title; the same by C1 characters; turns the direction of the line; rings.
EVIL = "\x1b[2J\x1b]0;owned\x07\x9b2J\x9d0;owned\x9c\u202eabc\x7f\x08\r"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def clean(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    for text in (done.stdout, done.stderr):
        assert not CONTROL.search(text), repr(text)
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose names, answers and reasons are full of escapes; one run has been made."""
    scenario: dict[str, Any] = scripted(f"talk {EVIL}", f"say {EVIL}")
    persona = {"name": f"Ada {EVIL}", "description": EVIL, "headers": {"X-Note": "plain"}}
    config = make_project(tmp_path / "project", [scenario], personas=[persona])
    apply_project(config)
    return config.parent


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("scenario", "list"),
        ("scenario", "show", f"talk {EVIL}"),
        ("scenario", "show", f"nobody {EVIL}"),
        ("persona", "list"),
        ("persona", "show", f"Ada {EVIL}"),
        ("export",),
        ("export", "--format", "json"),
        ("scenario", "export", "-"),
        ("scenario", "list", "--json"),
        ("status", "--json"),
        ("apply", f"gone{EVIL}.yaml"),
        ("run", "list", "--outcome", EVIL),
        ("run", "show", EVIL),
        ("run", "list", f"--{EVIL}"),
        (EVIL,),
        ("run", "list", "--limit", EVIL),
        ("export", "--format", EVIL),
        ("score", f"{EVIL}.jsonl", "-c", "plan.json"),
        ("status", "-c", f"{EVIL}.json"),
        ("status", "--server", f"http://127.0.0.1:1/{EVIL}"),
        ("db", "prune", "--keep", EVIL),
        ("evaluators", "show", EVIL),
        ("serve", "--host", EVIL),
    ],
    ids=lambda arguments: printable(" ".join(arguments))[:40],
)
def test_no_command_prints_them(folder: Path, arguments: tuple[str, ...]) -> None:
    clean(evalstudio(*arguments, cwd=folder))


def test_neither_do_runs_and_their_transcripts(folder: Path) -> None:
    ran = clean(evalstudio("eval", "run", cwd=folder))
    assert "echo: say" in clean(evalstudio("run", "show", _run_of(folder), cwd=folder)).stdout, ran.stderr
    clean(evalstudio("run", "list", cwd=folder))
    as_json = clean(evalstudio("run", "show", _run_of(folder), "--json", cwd=folder)).stdout
    assert EVIL.rstrip() in json.loads(as_json)["messages"][0]["content"]


def _run_of(folder: Path) -> str:
    return json.loads(evalstudio("run", "list", "--json", cwd=folder).stdout)["items"][0]["id"]


def test_an_error_nobody_thought_of_is_printed_without_them(tmp_path: Path) -> None:
    config = make_project(tmp_path / "project", [])
    (config.parent / "agent.py").write_text(f"raise RuntimeError({EVIL!r} + chr(27) + '[31m')")
    failed = clean(evalstudio("connector", "list", cwd=config.parent))
    assert failed.returncode in (0, 2)


def test_json_says_the_same_with_escapes() -> None:
    text = escaped_json(json.dumps({"a": EVIL}, ensure_ascii=False).encode())
    assert not CONTROL.search(text)
    assert json.loads(text) == {"a": EVIL}


def test_lines_of_the_log_hold_none() -> None:
    record = logging.LogRecord("evalstudio", logging.WARNING, "", 0, "%s said %s", ("agent", EVIL), None)
    assert not CONTROL.search(PlainFormatter("%(levelname)s %(message)s").format(record))


def test_styles_of_our_own_stay(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.text import Text

    open_console(force_terminal=True, highlight=False).print(Text(f"fail {EVIL}", "bold red"))
    printed = capsys.readouterr().out
    assert printed.startswith("\x1b[1;31mfail")
    assert "\x1b[2J" not in printed
    assert "\x9b" not in printed
