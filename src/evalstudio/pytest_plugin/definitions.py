"""The definitions of the files that pytest collects, read once and checked as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from glob import has_magic
from pathlib import Path

import pytest

from ..base.lazy_dataclass import dataclass
from ..execution.file_definitions import with_changes
from ..project.changes import DefinitionContext, ProjectState, changes_for, definition_files, read_files
from ..project.config import shared_variables
from ..project.documents import Document
from .engine import Engine

_DEFINITIONS = pytest.StashKey["FileDefinitions"]()


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """What files define, as documents and as what can be run."""

    documents: Sequence[Document] = ()
    state: ProjectState = field(default_factory=ProjectState)

    def in_file(self, path: Path) -> list[Document]:
        own = path.resolve()
        return [one for one in self.documents if one.located and Path(one.located.path).resolve() == own]


class FileDefinitions:
    """The files a session collects, and what they define."""

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._engine = config, Engine.of(config)
        self._read: dict[tuple[Path, ...], ReadFiles] = {}

    @classmethod
    def of(cls, config: pytest.Config) -> FileDefinitions:
        if _DEFINITIONS not in config.stash:
            config.stash[_DEFINITIONS] = cls(config)
        return config.stash[_DEFINITIONS]

    @cached_property
    def files(self) -> frozenset[Path]:
        """The files that are chosen by the ini file or by option; patterns are seen from the rootdir."""
        config, files = self._config, set[Path]()
        for pattern in (*config.getini("evalstudio_files"), *(config.getoption("evalstudio_files") or ())):
            path = config.rootpath / pattern
            matches = config.rootpath.glob(pattern) if has_magic(pattern) else [path]
            files |= {file for match in matches for file in definition_files(match)}
        return frozenset(files)

    def collected(self) -> ReadFiles:
        """What the chosen files define together."""
        return self.read(sorted(self.files)) if self.files else ReadFiles()

    def read(self, paths: Sequence[Path]) -> ReadFiles:
        key = tuple(paths)
        if key not in self._read:
            documents = read_files(paths)
            engine = self._engine
            variables = shared_variables(engine.config_path) if engine.config_path else frozenset[str]()
            context = DefinitionContext(engine.plugins.registry, engine.folder, variables=variables)
            changes = changes_for(ProjectState(), documents, context)
            self._read[key] = ReadFiles(documents, with_changes(ProjectState(), changes, None))
        return self._read[key]
