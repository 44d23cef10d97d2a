"""Builds the web UI into every wheel and source distribution, so that an installed package serves it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_NO_PAGES = (
    "The web UI could not be built, and without it the package would have no pages. It needs Node 20.19 or "
    'newer with npm: install it, or run "make setup", which brings one along, and build again.'
)


class BuildHook(BuildHookInterface):
    """An editable install serves what ``make web`` built; a source distribution carries the pages along."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        root = Path(self.root)
        pages = root / "src" / "evalstudio" / "server" / "web" / "index.html"
        if pages.exists() and (root / "PKG-INFO").exists():
            return
        built = subprocess.run([str(root / "scripts" / "web")], cwd=root).returncode == 0
        if not built or not pages.exists():
            self.app.abort(_NO_PAGES)
