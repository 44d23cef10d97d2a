"""A missing extra is named with its command, wherever it is needed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from evalstudio.base.extras import needs_extra
from evalstudio.llm.client import NATIVE_PROVIDERS

REPOSITORY = Path(__file__).parents[2]
# The command line in a program in which some packages cannot be imported.
WITHOUT = (
    "import sys; sys.modules.update(dict.fromkeys({hidden}, None)); from evalstudio.cli import main; main()"
)


def test_every_extra_is_one_of_the_package() -> None:
    package = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    sources = "".join(path.read_text() for path in (REPOSITORY / "src").rglob("*.py"))
    named = {*re.findall(r'needs_extra\(\s*"(\w+)"', sources), *NATIVE_PROVIDERS}
    assert len(named) > 5
    assert named <= set(package["project"]["optional-dependencies"])


def test_a_mistake_of_our_own_is_not_taken_for_a_missing_package() -> None:
    with pytest.raises(ImportError), needs_extra("parquet", "reading Parquet", ValueError):
        from evalstudio import nothing_of_this_name  # noqa: F401  # pyright: ignore


@pytest.mark.parametrize(
    "command", [["status"], ["db", "status"], ["db", "migrate"], ["run", "list"], ["worker"]]
)
def test_postgres_without_its_driver_is_one_line(tmp_path: Path, command: list[str]) -> None:
    storage = {"type": "postgres", "connectionString": "postgresql://user:secret@127.0.0.1:1/x"}
    (tmp_path / "evalstudio.config.json").write_text(json.dumps({"name": "p", "storage": storage}))
    code = WITHOUT.format(hidden=["asyncpg"])
    done = subprocess.run(
        [sys.executable, "-c", code, *command], cwd=tmp_path, capture_output=True, text=True
    )
    said = done.stdout + done.stderr
    assert done.returncode in (2, 4)
    assert 'pip install "evalstudio[postgres]"' in said
    assert "Traceback" not in said
    assert "secret" not in said
