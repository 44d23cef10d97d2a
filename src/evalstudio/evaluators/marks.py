"""Marks that fence off material in a prompt: random per call, so that no agent can guess and close one."""

from __future__ import annotations

import re
import secrets

# Recordings of prompts recognise marks by this form and leave them out of the comparison.
MARK = re.compile(r"\bmark-[0-9a-f]{16}\b")


def new_mark() -> str:
    return f"mark-{secrets.token_hex(8)}"


def fenced(title: str, text: str, mark: str) -> str:
    """The text between two lines that carry the mark."""
    return f"=== {title} {mark} ===\n{text}\n=== end of {title} {mark} ==="
