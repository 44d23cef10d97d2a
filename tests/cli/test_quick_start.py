"""A command that starts sooner still finds what pydantic would find."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ASK = """
import sys
from evalstudio.cli.quick_start import start_quickly

start_quickly()
from pydantic import BaseModel

class Model(BaseModel):
    x: int

print(len(list(sys.modules["pydantic.plugin._loader"].get_plugins())))
"""
PLUGIN = """
class Plugin:
    def new_schema_validator(self, *given, **named):
        return None, None, None

plugin = Plugin()
"""


@pytest.mark.parametrize("is_declared", [True, False])
def test_a_plugin_of_pydantic_is_loaded_where_one_is_declared(tmp_path: Path, is_declared: bool) -> None:
    (tmp_path / "noting.py").write_text(PLUGIN)
    facts = tmp_path / "noting-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: noting\nVersion: 1.0\n")
    if is_declared:
        (facts / "entry_points.txt").write_text("[pydantic]\nnoting = noting:plugin\n")
    asked = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{ASK}"]
    done = subprocess.run(asked, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1\n" if is_declared else "0\n", "")
