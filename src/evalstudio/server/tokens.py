"""The token of a server: given by the environment, or made once and kept beside the database."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

VARIABLE = "EVALSTUDIO_TOKEN"


def given_token() -> str | None:
    return os.environ.get(VARIABLE, "").strip() or None


def kept_token(folder: Path) -> tuple[str, bool]:
    """The token in a file only its owner can read; says whether it was made just now."""
    path = folder / "data" / "server.token"
    with suppress(FileNotFoundError):
        if text := path.read_text().strip():
            return text, False
    path.parent.mkdir(parents=True, exist_ok=True)
    token = secrets.token_urlsafe(32)
    with open(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w") as file:
        file.write(token)
    return token, True
