"""Which commands are read for a call."""

from __future__ import annotations

from typing import Any, get_args

import pytest
import typer

from evalstudio import cli
from evalstudio.cli import executions, report_files, runs
from evalstudio.cli.app import app_for
from evalstudio.evaluators.results import Outcome
from evalstudio.project.entities import ExecutionStatus, RunStatus
from evalstudio.reporting.reports import FORMATS

from .conftest import Typed


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


def test_words_that_options_list_are_those_of_the_entities() -> None:
    """The commands name them again, because help must not wait for the entities to be imported."""
    assert get_args(ExecutionStatus) == executions._STATUSES  # pyright: ignore[reportPrivateUsage]
    assert get_args(RunStatus) == runs._STATUSES  # pyright: ignore[reportPrivateUsage]
    assert get_args(Outcome) == runs._OUTCOMES  # pyright: ignore[reportPrivateUsage]
    assert tuple(report_files.FORMATS.split(", ")) == FORMATS


def test_a_defect_of_our_own_is_told_from_a_missed_requirement(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(word: str | None) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(cli, "_command", broken)
    done = typed("status", code=70)
    assert "RuntimeError: a defect" in done.err
