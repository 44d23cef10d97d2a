"""Tables that are written without rich are the ones that rich writes; all others are left to it."""

from __future__ import annotations

import sys

import pytest

from evalstudio.cli import output
from evalstudio.cli.simple_tables import simple_table

RUNS = ["Run", "Scenario", "Result"]
SIMPLE = [
    ("Runs", RUNS, [["1m7", "Question 1 · Shop", "pass"], ["1m8", "", "fail (3 of 4)"]]),
    ("Runs of a day", RUNS, []),
    ("", ["Name"], [["[bold]no markup[/bold] :smile: \\n"], ["x" * 78]]),
    ("T", ["a", "b"], [["95% – 97%", "2 × 3…"]]),
]
LEFT_TO_RICH = [
    ("A title that is longer", ["S", "T"], [["a", "1"]]),
    ("Runs", RUNS, [["1m7", "日本語", "pass"]]),
    ("Runs", RUNS, [["1m7", "two\nlines", "pass"]]),
    ("Runs", RUNS, [["1m7", "\x1b[31mred", "pass"]]),
    ("Runs", ["a" * 40, "b" * 40], [["", ""]]),
    ("[red]R", RUNS, []),
    ("Runs", ["Run", ":smile:"], []),
]


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("title", "columns", "rows"), SIMPLE)
def test_a_simple_table_is_line_for_line_what_rich_writes(
    title: str, columns: list[str], rows: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert simple_table(title, columns, rows)
    output.print_table(title, columns, rows)
    ours = capsys.readouterr().out
    output.print_wrapped_table(title, columns, rows)
    assert ours == capsys.readouterr().out


@pytest.mark.parametrize(("title", "columns", "rows"), LEFT_TO_RICH)
def test_what_needs_wrapping_or_more_than_plain_text_is_left_to_rich(
    title: str, columns: list[str], rows: list[list[str]]
) -> None:
    assert simple_table(title, columns, rows) is None


@pytest.mark.parametrize("variable", ["FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"])
def test_variables_that_speak_of_the_terminal_are_read_by_rich(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    assert simple_table(*SIMPLE[0]) is None


def test_a_terminal_shows_title_and_head_in_bold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    lines = simple_table(*SIMPLE[0]) or []
    assert [line.startswith("\x1b[1m") for line in lines] == [True, True, False, False, False, False]
    monkeypatch.setenv("TERM", "dumb")
    assert simple_table(*SIMPLE[0]) is None
