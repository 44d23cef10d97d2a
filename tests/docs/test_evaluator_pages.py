"""Every built-in evaluator has a page, and its config table is the one its schema gives."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.plugin_files import REPOSITORY

from evalstudio import create_registry

PAGES = REPOSITORY / "docs" / "evaluators"
TYPES = [item["type"] for item in create_registry().list_evaluator_types()]


def evaluator_docs(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The script of the project in a folder."""
    command = [sys.executable, str(folder / "scripts" / "evaluator-docs"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the script and of the pages, to be changed at will."""
    shutil.copytree(PAGES, tmp_path / "docs" / "evaluators")
    (tmp_path / "scripts").mkdir()
    shutil.copy(REPOSITORY / "scripts" / "evaluator-docs", tmp_path / "scripts")
    return tmp_path


def test_the_config_tables_are_up_to_date() -> None:
    done = evaluator_docs(REPOSITORY, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_is_one_page_per_evaluator() -> None:
    assert sorted(path.stem for path in PAGES.glob("*.md")) == sorted([*TYPES, "index"])


@pytest.mark.parametrize("name", TYPES)
def test_a_page_has_every_part(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {name}\n")
    for part in ("```mermaid", "## Use it to", "## Settings", "## Result", "## Example"):
        assert part in text


@pytest.mark.parametrize("name", TYPES)
def test_what_an_evaluator_costs_is_told(name: str) -> None:
    text = (PAGES / "index.md").read_text(encoding="utf-8").partition("## What they cost")[2]
    assert f"\n| `{name}` |" in text


def test_a_stale_table_is_noticed_and_mended(project: Path) -> None:
    page = project / "docs" / "evaluators" / "regex.md"
    good = page.read_text(encoding="utf-8")
    page.write_text(good.replace("| `pattern` |", "| `patern` |"), encoding="utf-8")
    noticed = evaluator_docs(project, "--check")
    assert (noticed.returncode, noticed.stdout) == (1, "docs/evaluators/regex.md is out of date\n")
    assert "`patern`" in page.read_text(encoding="utf-8")
    assert evaluator_docs(project).stdout == "docs/evaluators/regex.md was rewritten\n"
    assert page.read_text(encoding="utf-8") == good


def test_only_the_text_between_the_markers_changes(project: Path) -> None:
    page = project / "docs" / "evaluators" / "latency.md"
    page.write_text(
        "# mine\n<!-- config:begin -->\nold\n<!-- config:end -->\nrest | of it\n", encoding="utf-8"
    )
    assert evaluator_docs(project).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# mine\n<!-- config:begin -->\n")
    assert text.endswith("<!-- config:end -->\nrest | of it\n")
    assert "old" not in text


@pytest.mark.parametrize("text", ["", "# no markers\n", "<!-- config:begin -->\n" * 2])
def test_a_page_without_markers_is_named(project: Path, text: str) -> None:
    page = project / "docs" / "evaluators" / "human.md"
    page.write_text(text, encoding="utf-8")
    done = evaluator_docs(project)
    assert done.returncode == 1
    assert "human.md: needs one <!-- config:begin --> line" in done.stderr
