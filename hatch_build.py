"""Builds the web UI into the wheel, so that an installed package serves it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuildHook(BuildHookInterface):
    """Runs for a wheel only: an editable install serves what ``make web`` built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        built = root / "src" / "evalstudio" / "server" / "web" / "index.html"
        if version == "editable" or os.environ.get("EVALSTUDIO_NO_WEB") or built.exists():
            return
        if not (root / "web" / "package.json").exists() or shutil.which("npm") is None:
            self.app.display_warning("The web UI is left out: it needs Node and npm to be built.")
            return
        subprocess.run([str(root / "scripts" / "web")], check=True, cwd=root)
