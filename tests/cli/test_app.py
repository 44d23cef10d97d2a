"""Which commands are read for a call."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from evalstudio.cli.app import app_for


def names(word: str | None) -> list[str]:
    command: Any = typer.main.get_command(app_for(word))
    return list(command.commands)


def test_a_command_is_read_alone() -> None:
    assert names("status") == ["status"]
    assert names("run") == ["run"]


@pytest.mark.parametrize("word", [None, "--help", "--version", "nonsense", "", "stat"])
def test_any_other_word_reads_all_of_them(word: str | None) -> None:
    everything = names(word)
    assert len(everything) > 20
    assert {"status", "run", "eval", "schema"} <= set(everything)
