"""``--watch``: run again what a saved file touches.

Each run is a process of its own, so that changed code is imported afresh; there is never more than one. What
is saved during a run is noticed after it. Files are polled: that works on every file system, and for editors
that write beside a file and rename.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..base.lazy_dataclass import dataclass
from .exit_codes import STOPPED
from .output import near, warn
from .run_files import expanded, listed

if TYPE_CHECKING:
    from ..project.changes import DefinitionKey
    from ..project.config import ProjectConfig
    from ..project.documents import Document

_POLL_SECONDS = 0.25
_FLAG, _OPTION = "--watch", "--watch-also"
_CODE = (".py", ".yaml", ".yml", ".json", ".toml", ".txt", ".md")
_NO_CODE = ("__pycache__", "node_modules", "data")

Watched = Literal["eval", "scenario"]
Mark = tuple[int, int, int]
"""What changes when a file is saved: time, size and inode."""


@dataclass(frozen=True, slots=True)
class Definitions:
    """What the files define, and where the code and the cases are that it depends on."""

    bodies: Mapping[DefinitionKey, Mapping[str, Any]] = field(
        default_factory=dict["DefinitionKey", Mapping[str, Any]]
    )
    names: Mapping[DefinitionKey, str] = field(default_factory=dict["DefinitionKey", str])
    problem: str | None = None


def watch_files(
    files: Sequence[Path],
    config: Path | None,
    also: Sequence[Path],
    *,
    kind: Watched,
    server: str | None = None,
) -> int:
    """Run, and run again what a saved file touches, until somebody stops it."""
    from ..base.problems import InvalidInput

    if server is not None or "--json" in sys.argv:
        raise InvalidInput("--watch is for a person at a terminal, with files here: no --server, no --json")
    rounds = _Rounds()
    with rounds.stoppable():
        try:
            Watch(files, config, also, kind).run_for_ever(rounds)
        except _Stopped:
            warn("Stopped watching.")
    return STOPPED


class _Stopped(BaseException):
    """Somebody wants the watch to end."""


class _Rounds:
    """Runs the command again and again, and passes on to it what asks to stop.

    It has a process group of its own, so that Ctrl-C reaches it once, through us: a second one would end it
    before it has stored anything.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[Any] | None = None
        self._running = self._stopped = False
        self._unsent = 0

    @contextmanager
    def stoppable(self) -> Generator[None]:
        """Ctrl-C, SIGTERM and SIGHUP stop the watch; what was set before is put back."""
        numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
        before = {number: signal.signal(number, self._stop) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: object) -> None:
        self._stopped = True
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
        elif self._running:
            # It is being started; whoever starts it sends this on.
            self._unsent += 1
        else:
            raise _Stopped

    def run(self, arguments: Sequence[str]) -> None:
        command = [sys.executable, "-m", "evalstudio", *arguments]
        own_group: dict[str, Any] = {} if sys.platform == "win32" else {"process_group": 0}
        self._running = True
        with subprocess.Popen(command, **own_group) as process:
            self._process = process
            for _ in range(self._unsent):
                process.send_signal(signal.SIGINT)
            process.wait()
        self._process, self._running, self._unsent = None, False, 0
        if self._stopped:
            raise _Stopped


class Watch:
    """The files of one command, and what each of them touches."""

    def __init__(
        self, files: Sequence[Path], config: Path | None, also: Sequence[Path], kind: Watched
    ) -> None:
        from ..project.config import find_config

        self._files, self._also, self._kind = files, also, kind
        self._bodies: Mapping[DefinitionKey, Mapping[str, Any]] = {}
        self._config = config or find_config(Path.cwd())
        self._folder = self._config.resolve().parent if self._config else Path.cwd()

    def run_for_ever(self, rounds: _Rounds) -> None:
        known = self.read()
        marks = self._marks()
        self._run(rounds, None, known)
        while True:
            after = self._settled(marks)
            changed = {path for path in marks.keys() | after.keys() if marks.get(path) != after.get(path)}
            before, known = known, self.read()
            # Files of cases that are named for the first time have not changed.
            marks = self._marks() | after
            saved = listed([near(str(path)) for path in sorted(changed)])
            if known.problem is not None:
                warn(f"{saved} saved, but: {known.problem}\nWaiting for the next save.")
                # What worked last is what the next save is compared with.
                known = before
                continue
            touched = self.touched(changed, before, known)
            if touched is not None and not touched:
                warn(f"{saved} saved; nothing that runs was touched.")
            else:
                warn(
                    f"{saved} saved; running {'everything' if touched is None else listed(sorted(touched))}."
                )
                self._run(rounds, touched, known)

    def _settled(self, marks: Mapping[Path, Mark]) -> dict[Path, Mark]:
        """The files once they have changed and stay as they are: a save may take several steps."""
        previous = dict(marks)
        while True:
            time.sleep(_POLL_SECONDS)
            current = self._marks()
            if current == previous and current != marks:
                return current
            previous = current

    def _marks(self) -> dict[Path, Mark]:
        marks: dict[Path, Mark] = {}
        for path in self._paths():
            # Gone between being listed and looked at, it counts as gone.
            with suppress(OSError):
                facts = path.stat()
                marks[path.resolve()] = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        return marks

    def _paths(self) -> Iterable[Path]:
        from ..base.problems import InvalidInput
        from ..project.changes import definition_files

        for path in expanded(self._files):
            with suppress(InvalidInput, OSError):
                yield from definition_files(path)
        yield from self._case_files()
        for path in (*self._code(), *self._also):
            yield from _files_below(path)
        if self._config is not None:
            yield self._config

    def _case_files(self) -> Iterable[Path]:
        bodies = self._bodies.values()
        return [self._folder / body["cases"] for body in bodies if isinstance(body.get("cases"), str)]

    def _settings(self) -> ProjectConfig | None:
        from ..base.problems import InvalidInput
        from ..project.config import read_config

        with suppress(InvalidInput):
            return read_config(self._config) if self._config else None
        return None

    def _code(self) -> list[Path]:
        """Plugins and modules of agents that are part of the project."""
        return [*self._plugins(), *(path for paths in self._modules().values() for path in paths)]

    def _plugins(self) -> list[Path]:
        from ..plugins.loading import is_path, path_of

        settings = self._settings()
        names = settings.all_plugins if settings else []
        return [
            path
            for name in names
            for path in (
                [path_of(name, self._folder)] if is_path(name) else _module_paths(self._folder, name)
            )
        ]

    def _modules(self) -> dict[str, list[Path]]:
        settings = self._settings()
        return {
            name: _module_paths(self._folder, name) for name in (settings.python_modules if settings else ())
        }

    def read(self) -> Definitions:
        """What the files define now. A file that is half written is a problem to be told, not the end."""
        from ..base.problems import InvalidInput
        from ..project.changes import read_files

        if not self._files:
            return Definitions()
        try:
            documents: list[Document] = read_files(expanded(self._files))
        except (InvalidInput, OSError) as error:
            return Definitions(problem=str(error))
        self._bodies = {document.key: document.body for document in documents}
        return Definitions(self._bodies, {document.key: document.name for document in documents})

    def touched(self, changed: set[Path], before: Definitions, now: Definitions) -> set[str] | None:
        """The names of what has to run again; none means everything."""
        if not self._files:
            return None
        all_of_it = [self._config.resolve()] if self._config else []
        if any(_is_in(path, [*all_of_it, *(one.resolve() for one in self._also)]) for path in changed):
            return None
        keys = {key for key in now.bodies if now.bodies[key] != before.bodies.get(key)}
        keys |= {key for key, body in now.bodies.items() if self._depends(key, body, changed)}
        # What is gone touched what used it, as far as that is still there.
        keys |= before.bodies.keys() - now.bodies.keys()
        if self._kind == "scenario" and any(key[0] == "connector" for key in keys):
            return None
        return {now.names[key] for key in _users(keys, now) if key[0] == self._kind and key in now.names}

    def _depends(self, key: DefinitionKey, body: Mapping[str, Any], changed: set[Path]) -> bool:
        """Whether a definition uses code or cases among the changed files."""
        if isinstance(body.get("cases"), str) and (self._folder / body["cases"]).resolve() in changed:
            return True
        if key[0] == "connector" and body.get("type") == "python":
            module = str(body.get("config", {}).get("function", "")).partition(":")[0]
            return _any_in(changed, self._modules().get(module, []))
        return _any_in(changed, self._plugins()) and not _is_built_in(key, body)

    def _run(self, rounds: _Rounds, touched: set[str] | None, now: Definitions) -> None:
        if now.problem is not None:
            warn(f"{now.problem}\nWaiting for the next save.")
            return
        names = [part for name in sorted(touched or ()) for part in ("--touched", name)]
        rounds.run([*own_arguments(sys.argv[1:]), *names])
        warn("Watching; Ctrl-C ends it.")


def own_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments of the command without those that make it watch."""
    kept: list[str] = []
    skip = False
    for argument in arguments:
        if skip or argument == _FLAG or argument.startswith(f"{_OPTION}="):
            skip = False
        elif argument == _OPTION:
            skip = True
        else:
            kept.append(argument)
    return kept


def _module_paths(folder: Path, name: str) -> list[Path]:
    """Where a module of the project is, if it is one of the project's."""
    place = folder.joinpath(*name.split("."))
    return [path for path in (place.with_suffix(".py"), place) if path.exists()]


def _files_below(path: Path) -> Iterable[Path]:
    if not path.is_dir():
        return [path]
    files = (one for one in path.rglob("*") if one.suffix in _CODE)
    return [
        one
        for one in files
        if not any(part in _NO_CODE or part.startswith(".") for part in one.relative_to(path).parts)
    ]


def _any_in(changed: Iterable[Path], places: Sequence[Path]) -> bool:
    resolved = [place.resolve() for place in places]
    return any(_is_in(path, resolved) for path in changed)


def _is_in(path: Path, places: Iterable[Path]) -> bool:
    return any(path == place or path.is_relative_to(place) for place in places)


def _is_built_in(key: DefinitionKey, body: Mapping[str, Any]) -> bool:
    """Whether every type a definition uses is one of ours."""
    from ..plugins import create_registry

    registry = create_registry()
    if key[0] == "connector":
        return registry.get_connector(str(body.get("type"))) is not None
    entries: Sequence[Mapping[str, Any]] = body.get("evaluators") or ()
    return all(registry.get_evaluator(str(entry.get("type"))) is not None for entry in entries)


def _users(keys: set[DefinitionKey], now: Definitions) -> set[DefinitionKey]:
    """The definitions and all that refer to them, however far."""
    from ..project.documents import REFERENCES
    from ..project.entities import name_key

    touched = set(keys)
    while True:
        more = {
            key
            for key, body in now.bodies.items()
            for field_name, (_, target) in REFERENCES[key[0]].items()
            if any((target, name_key(name)) in touched for name in body.get(field_name, ()))
        }
        if more <= touched:
            return touched
        touched |= more
