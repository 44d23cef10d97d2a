"""Every row of the table comes out as it must, and the docs show the table as it is."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter
from pathlib import Path

import pytest

from . import __path__ as folder
from .table import ROWS, Row

for module in pkgutil.iter_modules(folder):
    if not module.name.startswith("test_"):
        importlib.import_module(f"{__package__}.{module.name}")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "what-cannot-pass.md"
AREAS = {
    "agent": "What an agent sends",
    "data": "Records, datasets and evaluators' results",
    "judge": "Judges and people",
    "definition": "Definitions",
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_no_pass_without_evidence(row: Row) -> None:
    came = await row.run()
    assert came.outcome != "pass", came.says
    assert came.outcome == row.expect or (row.expect == "error" and came.outcome.startswith("error"))
    assert row.says in came.says


def test_no_row_is_there_twice() -> None:
    assert [name for name, count in Counter(row.name for row in ROWS).items() if count > 1] == []
    assert [text for text, count in Counter(row.attempt for row in ROWS).items() if count > 1] == []


def test_the_docs_show_the_table() -> None:
    """Write the page anew with: .venv/bin/python scripts/false-pass-docs"""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition("<!-- table:begin -->\n")
    shown, _, _ = rest.partition("<!-- table:end -->")
    assert before
    assert shown == markdown()


def markdown() -> str:
    """The table as the docs show it."""
    lines: list[str] = []
    for area, title in AREAS.items():
        rows = [row for row in ROWS if row.area == area]
        lines += ["", f"## {title}", "", "| attempt | outcome |", "|---|---|"]
        lines += [f"| {row.attempt.replace('|', chr(92) + '|')} | {row.expect} |" for row in rows]
    return "\n".join([*lines, "", ""])
