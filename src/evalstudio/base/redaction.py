"""Known secrets, kept out of texts and data; and the names under which secrets are found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from .json_text import json_text

SECRET_HEADER = re.compile(
    r"auth|token|secret|key|passw|passphrase|cookie|session|credential|signature|jwt", re.IGNORECASE
)
# Settings are many, so their names are matched at the end only: apiKey and access_token, not tokenizer.
SECRET_SETTING = re.compile(
    r"(api|access|private|signing)[-_]?key$|(token|secret|password|passphrase|cookie|authorization"
    r"|credentials?)$",
    re.IGNORECASE,
)
_HIDDEN = "***"
# Headers that say how to talk rather than who is talking.
_HARMLESS = frozenset({"accept", "accept-language", "cache-control", "content-type", "user-agent"})


@dataclass(slots=True, frozen=True)
class Redaction:
    """Replaces secrets that somebody may have echoed."""

    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, secrets: Iterable[str | None], *, shortest: int = 4) -> Redaction:
        """A redaction of these secrets, also as JSON writes them.

        Those below the shortest length stay: replacing short words would spoil ordinary sentences.
        """
        known = {secret for secret in secrets if secret}
        known |= {json_text(secret)[1:-1] for secret in known}
        # The longest first: a secret may contain another.
        return cls(tuple(sorted((s for s in known if len(s) >= shortest), key=len, reverse=True)))

    def __call__(self, text: str) -> str:
        for secret in self.secrets:
            if secret in text:
                text = text.replace(secret, _HIDDEN)
        return text

    def everywhere(self, value: Any) -> Any:
        """A copy of plain data, redacted in all its texts."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return {name: self.everywhere(item) for name, item in cast(Mapping[str, Any], value).items()}
        if isinstance(value, list | tuple):
            return [self.everywhere(item) for item in cast("list[Any]", value)]
        return value


def secrets_sent(address: str, headers: Mapping[str, str]) -> set[str]:
    """Everything in a resolved address and headers that nobody should read in an error."""
    secrets = _in_address(address)
    for name, value in headers.items():
        if name.lower() not in _HARMLESS:
            secrets |= {value, *value.split()[1:]}
    return secrets


def _in_address(address: str) -> set[str]:
    try:
        parts = urlsplit(address)
    except ValueError:
        return {address}
    credentials = parts.netloc.rpartition("@")[0].split(":")
    query = [value for _, value in parse_qsl(parts.query)]
    return {*credentials, *(unquote(part) for part in credentials), *query}
