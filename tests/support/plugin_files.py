"""Plugin files and projects for the tests of plugins and of the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalstudio import PluginRegistry

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples"


def evaluator_source(name: str) -> str:
    return (
        "from evalstudio import define_evaluator\n\n\n"
        "@define_evaluator\n"
        f"def {name}(ctx):\n"
        f'    """Looks at {name}."""\n'
        "    return True\n"
    )


def write_project(folder: Path, plugins: list[str], files: dict[str, str] | None = None, **more: Any) -> Path:
    """A project folder with plugin files; answers the path of its config file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in (files or {}).items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(source, encoding="utf-8")
    config = folder / "evalstudio.config.json"
    config.write_text(json.dumps({"version": 2, "plugins": plugins, **more}), encoding="utf-8")
    return config


def plugin_types(registry: PluginRegistry) -> list[str]:
    """The evaluator types that are not built in."""
    return [item["type"] for item in registry.list_evaluator_types() if not item["builtin"]]


def write_distribution(folder: Path, name: str, modules: dict[str, str], announces: str = "") -> None:
    """A distribution as an installer leaves it: modules and metadata side by side."""
    for file, source in modules.items():
        place = folder / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(source, encoding="utf-8")
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in modules))
    if announces:
        (info / "entry_points.txt").write_text(f"[evalstudio.plugins]\n{announces}\n")


def broken_plugins(tmp_path: Path) -> dict[str, tuple[Path, list[str]]]:
    """Every way a plugin can be broken, with what the user must read."""
    good = evaluator_source("first_check")

    def project(name: str, plugins: list[str], files: dict[str, str] | None = None) -> Path:
        return write_project(tmp_path / name, plugins, files)

    return {
        "missing path": (
            project("missing-path", ["./nope.py"]),
            ['Plugin "./nope.py" not found. Looked in:', "missing-path/nope.py"],
        ),
        "missing distribution": (
            project("missing-dist", ["evalstudio-my-agent"]),
            [
                'Plugin "evalstudio-my-agent" not found. Looked in:',
                'Install it with "pip install evalstudio-my-agent".',
            ],
        ),
        "syntax error": (
            project("syntax", ["./bad.py"], {"bad.py": "x = 1\ndef broken(:\n    pass\n"}),
            ['Plugin "./bad.py" could not be imported:', "bad.py", "line 2", "SyntaxError"],
        ),
        "nothing in it": (
            project("nothing", ["./empty.py"], {"empty.py": ""}),
            [
                'Plugin "./empty.py" has no evaluators or connectors. '
                "Use define_evaluator() or define_connector() at module level."
            ],
        ),
        "duplicate of a built-in": (
            project("builtin", ["./x.py"], {"x.py": evaluator_source("regex")}),
            ['Evaluator type "regex" is already registered (built-in). Plugin "./x.py" cannot override it.'],
        ),
        "duplicate of another plugin": (
            project("twice", ["./a.py", "./b.py"], {"a.py": good, "b.py": good}),
            [
                'Evaluator type "first-check" is already registered (plugin "./a.py"). '
                'Plugin "./b.py" cannot override it.'
            ],
        ),
        "raises at import": (
            project("raises", ["./r.py"], {"r.py": "def go():\n    raise OSError('no disk')\n\n\ngo()\n"}),
            ['Plugin "./r.py" could not be imported:', "in go", "OSError: no disk"],
        ),
        "exits at import": (
            project("exits", ["./e.py"], {"e.py": "import sys\n\nsys.exit(0)\n"}),
            ['Plugin "./e.py" could not be imported:', "line 3", "SystemExit: 0"],
        ),
    }


BROKEN = (
    "missing path",
    "missing distribution",
    "syntax error",
    "nothing in it",
    "duplicate of a built-in",
    "duplicate of another plugin",
    "raises at import",
    "exits at import",
)
