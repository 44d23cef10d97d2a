"""Whose code is run: files of other users, and those anybody may change, only where their folder is trusted.

Opening a project runs its plugins. A folder is trusted by ``EVALSTUDIO_TRUST``, for containers and CI, or by
a list that each user keeps.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from .files import read_text
from .private_files import open_private
from .problems import InvalidInput, Problem

VARIABLE = "EVALSTUDIO_TRUST"
_ROOT = 0
_MOST_FILES = 1_000


def check_trusted(path: Path) -> None:
    """Refuse a file or folder whose code would run and that somebody else wrote or may write."""
    for one in _deciding(path):
        problem = _problem_with(one)
        if problem is not None and not _is_trusted(path):
            folder = (path if path.is_dir() else path.parent).resolve()
            hint = f"if you trust it, run: evalstudio trust {folder} (or set {VARIABLE}={folder})"
            message = f"{problem}, and code from there would run as you"
            raise InvalidInput(Problem(message, hint=hint, place=str(one)))


def _deciding(path: Path) -> list[Path]:
    """The path itself, the folder that says what it is, and what a package consists of."""
    parts = [path, path.parent]
    if path.is_dir():
        parts += [file for _, file in zip(range(_MOST_FILES), path.rglob("*.py"), strict=False)]
    return parts


def _problem_with(path: Path) -> str | None:
    user = getattr(os, "geteuid", lambda: None)()
    if user is None:
        return None
    for follow in (False, True):
        with suppress(FileNotFoundError):
            facts = path.stat(follow_symlinks=follow)
            if facts.st_uid not in (user, _ROOT):
                return f"belongs to {_name_of(facts.st_uid)}"
            if facts.st_mode & stat.S_IWOTH and not _is_guarded(facts.st_mode):
                return "can be changed by everybody"
    return None


def _is_guarded(mode: int) -> bool:
    """Whether a mode that lets everybody write does no harm: a link's, a device's, or that of /tmp."""
    is_folder = stat.S_ISDIR(mode)
    return bool(mode & stat.S_ISVTX) if is_folder else not stat.S_ISREG(mode)


def _name_of(user: int) -> str:
    with suppress(ImportError, KeyError):
        from pwd import getpwuid

        return f"the user {getpwuid(user).pw_name}"
    return f"another user ({user})"


def _is_trusted(path: Path) -> bool:
    resolved = path.resolve()
    return any(resolved.is_relative_to(folder) for folder in trusted_folders())


def trusted_folders() -> list[Path]:
    """The folders trusted by the environment and by this user."""
    named = [Path(text) for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text.strip()]
    return [*(folder.expanduser().resolve() for folder in named), *_kept()]


def trust(folder: Path) -> None:
    """Remember a folder, with everything below it, as trusted by this user."""
    _keep([*_kept(), folder.resolve()])


def distrust(folder: Path) -> None:
    _keep([one for one in _kept() if one != folder.resolve()])


def trust_file() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME", "").strip()
    return (Path(home) if home else Path.home() / ".config") / "evalstudio" / "trusted"


def _kept() -> list[Path]:
    path = trust_file()
    # A list that somebody else wrote says nothing of what this user trusts.
    if not path.is_file() or _problem_with(path) is not None:
        return []
    return [Path(line) for line in read_text(path).splitlines() if line.strip()]


def _keep(folders: list[Path]) -> None:
    lines = "".join(f"{folder}\n" for folder in dict.fromkeys(folders))
    with open(open_private(trust_file(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as file:
        file.write(lines)
