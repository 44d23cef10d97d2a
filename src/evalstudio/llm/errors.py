"""What goes wrong with a model: one error, written for the person who reads it."""

from __future__ import annotations


class ModelError(Exception):
    """A model gave no usable answer. ``raw`` is its reply where there was one, ``status`` the HTTP status."""

    def __init__(self, message: str, *, raw: str | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.raw = raw
        self.status = status


def redact(text: str, secret: str | None) -> str:
    """The text with the secret blotted out, should a server have echoed it."""
    return text.replace(secret, "***") if secret else text
