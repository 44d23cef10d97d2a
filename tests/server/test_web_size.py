"""What a browser must load before the first page is shown stays small."""

from __future__ import annotations

import gzip
import re

from evalstudio.server.static import WEB

FIRST_LOAD = 300_000


def _imports(script: str) -> set[str]:
    """The scripts that a script imports before it runs; those it loads later are `import(…)`."""
    return set(re.findall(r"(?:from|import)\s*[\"']\./([\w.-]+\.js)[\"']", script))


def test_the_first_load_is_under_300_kilobytes() -> None:
    page = (WEB / "index.html").read_text()
    files = set(re.findall(r"(?:src|href)=\"/((?:assets/)?[\w.-]+\.(?:js|css|woff2|svg))\"", page))
    assert any(name.endswith(".js") and "assets" in name for name in files)
    waiting = [name for name in files if name.startswith("assets/") and name.endswith(".js")]
    while waiting:
        for name in _imports((WEB / waiting.pop()).read_text()):
            if f"assets/{name}" not in files:
                files.add(f"assets/{name}")
                waiting.append(f"assets/{name}")
    sizes = {name: len(gzip.compress((WEB / name).read_bytes())) for name in files}
    total = sum(sizes.values()) + len(gzip.compress(page.encode()))
    assert total < FIRST_LOAD, (total, sizes)
