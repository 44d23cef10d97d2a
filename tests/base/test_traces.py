"""Errors of other people's code: what they are, where they happened, and nothing they should not tell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from evalstudio.base.traces import described, error_text, place_of, relative, trace_of

PLUGIN = """
import json


def check(text):
    return json.loads(text)


def deep(n):
    if n == 0:
        raise ValueError("at the bottom")
    return deep(n - 1)
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Functions of a file in a project, as if it had been imported."""
    file = tmp_path / "checks" / "orders.py"
    file.parent.mkdir()
    file.write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    names: dict[str, Any] = {}
    exec(compile(PLUGIN, str(file), "exec"), names)
    return names


def caught(function: Any, *arguments: Any) -> BaseException:
    try:
        function(*arguments)
    except BaseException as error:
        return error
    raise AssertionError("it raised nothing")


def test_the_place_is_the_users_line_not_the_librarys(plugin: dict[str, Any]) -> None:
    error = caught(plugin["check"], "{")
    assert place_of(error) == "checks/orders.py:6"
    assert described(error, "./checks/orders.py").endswith("(checks/orders.py:6, plugin ./checks/orders.py)")
    assert described(error).startswith("JSONDecodeError: Expecting property name")


def test_a_traceback_begins_in_the_users_code_and_tells_no_absolute_path(plugin: dict[str, Any]) -> None:
    trace = trace_of(caught(plugin["check"], "{"))
    assert 'File "checks/orders.py", line 6, in check' in trace
    assert 'File "json/__init__.py"' in trace
    assert str(Path(sys.prefix)) not in trace
    assert "/tmp" not in trace


def test_a_long_traceback_keeps_its_end(plugin: dict[str, Any]) -> None:
    error = caught(plugin["deep"], 500)
    error.add_note("x" * 100_000)
    trace = trace_of(error)
    assert len(trace) < 7_000
    assert "ValueError: at the bottom" in trace


def test_secrets_of_the_environment_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "sk-very-secret-1")

    def call() -> None:
        raise RuntimeError("401 for sk-very-secret-1 at shop-internal")

    error = caught(call)
    assert error_text(error) == "RuntimeError: 401 for *** at shop-internal"
    trace = trace_of(error, lambda text: text.replace("shop-internal", "(place)"))
    assert "sk-very" not in trace.replace('raise RuntimeError("401 for sk-very-secret-1', "")
    assert "RuntimeError: 401 for *** at (place)" in trace


def test_an_error_that_cannot_be_put_into_words_is_still_told() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    assert error_text(Mute()) == "Mute: (its message cannot be read)"
    assert "Mute" in trace_of(caught(lambda: (_ for _ in ()).throw(Mute())))
    assert error_text(KeyError()) == "KeyError"


def test_a_file_outside_of_everything_is_told_by_its_name() -> None:
    assert relative("/nowhere/to/be/found.py") == "found.py"
    assert relative("<string>") == "<string>"
