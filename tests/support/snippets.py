"""Reads the fenced blocks of a Markdown page and runs them as a reader would: in order, in one folder.

Python blocks share one namespace; ``#>`` lines say what a block prints. A block after ``<!-- file: x -->``
is written to that file. Console blocks run what follows ``$ ``; a line ``...`` stands for any lines.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

_FENCE = re.compile(r"\s*(?P<ticks>```+)(?P<language>\w*)\s*$")
_FILE = re.compile(r"<!-- file: (?P<name>[\w./-]+) -->\s*$")
ANYTHING = "..."
# Shown but not run: pictures, plain text, and installers.
SHOWN_ONLY = frozenset({"mermaid", "text", "sh"})
KNOWN = frozenset({"python", "console", "yaml", "json", "jsonl", "csv", "toml"}) | SHOWN_ONLY


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block and where it stands."""

    language: str
    text: str
    line: int
    file: str | None = None


def blocks_of(markdown: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    inside: tuple[str, str, int] | None = None
    name: str | None = None
    text: list[str] = []
    for number, line in enumerate(markdown.splitlines(), 1):
        if inside is not None:
            ticks, language, start = inside
            if line.strip() == ticks:
                found.append(Block(language, dedent("\n".join(text)) + "\n", start, name))
                inside, name, text = None, None, []
            else:
                text.append(line)
        elif fence := _FENCE.match(line):
            inside = fence["ticks"], fence["language"], number
        elif line.strip():
            file = _FILE.match(line)
            name = file["name"] if file else None
    assert inside is None, f"the block of line {inside[2]} is never closed"
    return found


def matches(printed: Iterable[str], expected: Iterable[str]) -> bool:
    """Whether the printed lines are the expected ones; blanks at the end of a line do not count."""
    lines, wanted = [line.rstrip() for line in printed], [line.rstrip() for line in expected]
    if not wanted:
        return not lines
    if wanted[0] == ANYTHING:
        return any(matches(lines[skipped:], wanted[1:]) for skipped in range(len(lines) + 1))
    return bool(lines) and lines[0] == wanted[0] and matches(lines[1:], wanted[1:])


@dataclass(slots=True)
class Page:
    """A page being run in a folder."""

    folder: Path
    environment: Mapping[str, str]
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})

    def run(self, blocks: Iterable[Block], where: str) -> None:
        with asyncio.Runner() as loop:
            for block in blocks:
                place = f"{where}:{block.line}"
                assert block.language in KNOWN, f"{place}: what is a {block.language!r} block?"
                if block.file is not None:
                    self._write(block)
                elif block.language == "python":
                    self._python(block, place, loop)
                elif block.language == "console":
                    self._console(block, place)
                else:
                    parse(block)

    def _write(self, block: Block) -> None:
        assert block.file is not None
        path = self.folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        parse(block)

    def _python(self, block: Block, place: str, loop: asyncio.Runner) -> None:
        # The line breaks keep the page's own line numbers in a traceback.
        source, flags = "\n" * block.line + block.text, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile(source, place, "exec", flags=flags, dont_inherit=True)
        printed = io.StringIO()
        with redirect_stdout(printed):
            result = eval(code, self.names)
            if inspect.iscoroutine(result):
                loop.run(result)
        wanted = [line.strip()[2:].removeprefix(" ") for line in block.text.splitlines() if _says(line)]
        lines = printed.getvalue().splitlines()
        assert not wanted or matches(lines, wanted), f"{place} printed:\n{printed.getvalue()}"

    def _console(self, block: Block, place: str) -> None:
        steps = list(steps_of(block.text))
        assert steps, f"{place}: no line starts with $"
        code = 0
        for (command, wanted), (following, _) in pairwise([*steps, ("", [])]):
            code, printed = self._shell(command, code)
            assert not wanted or matches(printed.splitlines(), wanted), f"{place}: {command}\n{printed}"
            if not following.startswith("echo $?"):
                assert code == 0, f"{place}: {command} ended with {code}\n{printed}"

    def _shell(self, command: str, before: int) -> tuple[int, str]:
        """Run one command; ``$?`` in it is how the one before it ended."""
        done = subprocess.run(
            ["bash", "-c", f"(exit {before})\n{command}"],
            cwd=self.folder,
            env=dict(self.environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout


def _says(line: str) -> bool:
    return line.strip().startswith("#>")


def parse(block: Block) -> None:
    """A block of data must at least be what it claims to be."""
    match block.language:
        case "json":
            json.loads(block.text)
        case "jsonl":
            for line in block.text.splitlines():
                json.loads(line)
        case "yaml":
            yaml.safe_load(block.text)
        case "python":
            compile(block.text, block.file or "block", "exec", dont_inherit=True)
        case _:
            pass


def steps_of(text: str) -> Iterable[tuple[str, list[str]]]:
    """Each command of a console block, with the lines shown below it."""
    command, wanted = "", list[str]()
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            if command:
                yield command, wanted
            command, wanted = line[2:], []
        else:
            wanted.append(line)
    if command:
        yield command, wanted


def quiet_environment(**variables: str) -> dict[str, str]:
    """The environment without keys, and the same width of terminal everywhere."""
    kept = {name: value for name, value in os.environ.items() if "KEY" not in name and name != "FORCE_COLOR"}
    return kept | {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"} | variables
