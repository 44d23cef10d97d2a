"""The command line in this process: quick, with everything but a process of its own real."""

from __future__ import annotations

import io
import json
import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evalstudio.cli import main


@dataclass(frozen=True, slots=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


class Terminal(io.StringIO):
    """A person at a keyboard."""

    def isatty(self) -> bool:
        return True


class Typed:
    """Runs a command as if it had been typed. It must succeed, unless a code, or None for any, is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str, code: int | None = 0, stdin: str | io.StringIO = "") -> Done:
        self._patch.setattr(sys, "argv", ["evalstudio", *arguments])
        self._patch.setattr(sys, "stdin", io.StringIO(stdin) if isinstance(stdin, str) else stdin)
        self._capsys.readouterr()
        ended, log = 0, logging.getLogger("evalstudio")
        handlers, level = [*log.handlers], log.level
        try:
            main()
        except SystemExit as error:
            ended = int(error.code or 0)
        finally:
            # What a server logs to is closed with the test.
            log.handlers[:] = handlers
            log.setLevel(level)
        found = self._capsys.readouterr()
        assert code in (None, ended), f"{arguments}: {ended}\n{found.out}\n{found.err}"
        return Done(ended, found.out, found.err)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    return Typed(monkeypatch, capsys)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: Typed) -> Path:
    """A fresh project, made by ``evalstudio init``, as the folder at hand."""
    folder = tmp_path / "studio"
    typed("init", str(folder))
    monkeypatch.chdir(folder)
    return folder
