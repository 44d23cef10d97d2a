"""pytest as a user runs it: a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.command_line import run_pytest

OPTIONS = ("-rA", "--color=no")
RESULT = re.compile(r"^(PASSED|FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TestRun:
    """What a run of pytest printed and how it exited."""

    __test__ = False
    code: int
    out: str

    @property
    def results(self) -> dict[str, str]:
        """The result of every test, by node id."""
        lines = self.out.partition("short test summary")[2]
        return {node: word.lower() for word, node in RESULT.findall(lines)}


RunTests = Callable[..., TestRun]


@pytest.fixture
def run_tests(tmp_path: Path) -> RunTests:
    """Run pytest in the folder of this test."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    # Other plugins of this environment take seconds to load; what a test needs it names.
    environment |= {"COLUMNS": "200", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def run(*arguments: str, code: int | None = 0, ini: str = "", cold: bool = False) -> TestRun:
        (tmp_path / "pytest.ini").write_text(f"[pytest]\n{ini}\n")
        options = (*OPTIONS, "-p", "evalstudio.pytest_plugin", *arguments)
        done = run_pytest(*options, cwd=tmp_path, environment=environment, cold=cold)
        text = done.stdout + done.stderr
        assert code in (None, done.returncode), text
        return TestRun(done.returncode, text)

    return run
