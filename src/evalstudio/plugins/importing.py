"""Importing plugin code: files under names of their own, with what lies beside them importable.

Plugin folders go to the end of the import path, so that a project's file can never take the place of
an installed package or of the standard library.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
import traceback
from collections.abc import Iterable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

_PACKAGE = str(Path(__file__).parents[1])
_MOST_LINES = 12
_LONGEST_LINE = 300

# The import path is one per process, and so is the record of what was added to it, newest first.
_added: list[str] = []


class _FreshLoader(SourceFileLoader):
    """Always compiles the source: a file edited within the same second must not run as it was before."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def import_path(path: Path) -> ModuleType:
    """Run a Python file, or a folder with an ``__init__.py``, as a module of its own."""
    folder = [str(path)] if path.is_dir() else None
    file = path / "__init__.py" if folder else path
    name = _module_name(path)
    loader = _FreshLoader(name, str(file))
    spec = spec_from_file_location(name, file, loader=loader, submodule_search_locations=folder)
    assert spec is not None
    _forget(name)
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        _forget(name)
        raise
    return module


def _module_name(path: Path) -> str:
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:10]
    return f"evalstudio_plugin_{re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}_{digest}"


def _forget(name: str) -> None:
    for known in [known for known in sys.modules if known == name or known.startswith(name + ".")]:
        del sys.modules[known]


def make_importable(folders: Iterable[Path]) -> None:
    """Put folders on the import path, before those of projects loaded earlier in this process."""
    wanted = list(dict.fromkeys(str(folder) for folder in folders))
    earlier = [folder for folder in _added if folder not in wanted]
    foreign = [folder for folder in sys.path if folder not in _added]
    _forget_shadowed(wanted, earlier)
    _added[:] = [folder for folder in wanted if folder not in foreign] + earlier
    sys.path[:] = foreign + _added
    importlib.invalidate_caches()


def _forget_shadowed(wanted: list[str], earlier: list[str]) -> None:
    """Another project's module must not answer for one of the same name in these folders."""
    for name, module in list(sys.modules.items()):
        if "." not in name and _home(module) in earlier and any(_holds(folder, name) for folder in wanted):
            _forget(name)


def _home(module: ModuleType) -> str | None:
    file = getattr(module, "__file__", None)
    if not file:
        return None
    path = Path(file)
    return str(path.parent.parent if path.name == "__init__.py" else path.parent)


def _holds(folder: str, name: str) -> bool:
    place = Path(folder) / name
    return place.with_suffix(".py").is_file() or place.is_dir()


def last_lines(error: BaseException) -> str:
    """The end of a traceback, without the frames that led to the plugin."""
    trace = _from_plugin(error.__traceback__)
    text = "".join(traceback.format_exception(type(error), error, trace, chain=False))
    lines = [line for line in text.splitlines() if line != "Traceback (most recent call last):"]
    return "\n".join("  " + line[:_LONGEST_LINE] for line in lines[-_MOST_LINES:])


def _from_plugin(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not (file.startswith(("<frozen importlib", _PACKAGE)) or file == importlib.__file__):
            return trace
        trace = trace.tb_next
    return None
