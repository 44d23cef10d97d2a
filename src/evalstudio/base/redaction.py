"""Known secrets, kept out of texts and data; and the names under which secrets are found."""

from __future__ import annotations

import json
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from .json_text import json_text
from .lazy_dataclass import dataclass

if TYPE_CHECKING:
    from .paths import Steps

SECRET_HEADER = re.compile(
    r"auth|token|secret|key|passw|passphrase|cookie|session|credential|signature|jwt", re.IGNORECASE
)
# Settings are many, so their names are matched at the end only: apiKey and access_token, not tokenizer.
SECRET_SETTING = re.compile(
    r"(api|access|private|signing|secret)[-_]?key$|(token|secret|password|passphrase|cookie|authorization"
    r"|credentials?)$",
    re.IGNORECASE,
)
_HIDDEN = "***"
_PERCENT = re.compile(r"%[0-9A-F]{2}")
# Headers that say how to talk rather than who is talking.
_HARMLESS = frozenset({"accept", "accept-language", "cache-control", "content-type", "user-agent"})


# Shorter values are left in what agents say: "true" or "acme" would be taken out of every second sentence.
SHORTEST_IN_ANSWERS = 8


@dataclass(slots=True, frozen=True)
class Redaction:
    """Replaces secrets that somebody may have echoed, however they are written."""

    secrets: tuple[str, ...] = field(default=(), repr=False)
    _pattern: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pattern", _pattern_of(self.secrets) if self.secrets else None)

    @classmethod
    def of(cls, secrets: Iterable[str | None], *, shortest: int = 4) -> Redaction:
        """A redaction of these secrets.

        Those below the shortest length stay: replacing short words would spoil ordinary sentences.
        """
        known = {secret for secret in secrets if secret and len(secret) >= shortest}
        return cls(tuple(sorted(known, key=lambda secret: (-len(secret), secret))))

    def __bool__(self) -> bool:
        return self._pattern is not None

    def __call__(self, text: str) -> str:
        """The text without secrets; the same object where it holds none."""
        match = self._pattern.search(text) if self._pattern is not None else None
        return text if match is None else self._replaced(text, match)

    def _replaced(self, text: str, match: re.Match[str] | None) -> str:
        """Secrets may overlap: what any of them covers is taken out."""
        assert self._pattern is not None
        spans: list[list[int]] = []
        while match is not None:
            start, end = match.span()
            if spans and start < spans[-1][1]:
                spans[-1][1] = max(spans[-1][1], end)
            else:
                spans.append([start, end])
            match = self._pattern.search(text, start + 1)
        pieces: list[str] = []
        last = 0
        for start, end in spans:
            pieces += (text[last:start], _HIDDEN)
            last = end
        return "".join((*pieces, text[last:]))

    def everywhere(self, value: Any, path: Steps = (), places: list[Steps] | None = None) -> Any:
        """A copy of plain data, redacted in all its texts, names and numbers; ``places`` is told where."""
        if isinstance(value, str):
            return self._noted(value, value, path, places)
        if isinstance(value, Mapping):
            fields = cast(Mapping[Any, Any], value).items()
            return {
                self._noted(name, name, path, places) if isinstance(name, str) else name: self.everywhere(
                    item, (*path, self(str(name))), places
                )
                for name, item in fields
            }
        if isinstance(value, list | tuple):
            items = enumerate(cast("list[Any]", value))
            return [self.everywhere(item, (*path, number), places) for number, item in items]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._noted(value, repr(value), path, places)
        return value

    def _noted(self, value: Any, text: str, path: Steps, places: list[Steps] | None) -> Any:
        redacted = self(text)
        if redacted is text:
            return value
        if places is not None:
            places.append(path)
        return redacted


@lru_cache(maxsize=256)
def _pattern_of(secrets: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern for all forms of all secrets, the longest first where several begin alike."""
    groups: dict[str, list[str]] = {}
    # In this order a text comes before those that it begins with.
    for form in sorted({form for secret in secrets for form in _forms(secret)}, reverse=True):
        groups.setdefault(form[0], []).append(form[1:])
    # Grouped by the first character: the search then passes over most of a text without trying them all.
    return re.compile(
        "|".join(
            f"{re.escape(first)}(?:{'|'.join(map(re.escape, rests))})" for first, rests in groups.items()
        )
    )


def _forms(secret: str) -> set[str]:
    """The ways in which a secret is written: as it is, in JSON, in an address, in base64 and in hex."""
    in_json = json_text(secret)[1:-1]
    forms = {secret, in_json, in_json.replace("/", "\\/"), json.dumps(secret)[1:-1]}
    raw = secret.encode(errors="surrogatepass")
    quoted = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    forms |= quoted | {_PERCENT.sub(lambda code: code[0].lower(), one) for one in quoted}
    if len(secret) < SHORTEST_IN_ANSWERS:
        return forms
    forms |= {raw.hex(), raw.hex().upper(), b64encode(raw).decode()}
    cores = {_base64_core(raw, before) for before in range(3)}
    return forms | cores | {core.replace("+", "-").replace("/", "_") for core in cores}


def _base64_core(raw: bytes, before: int) -> str:
    """What is in base64 of a secret wherever it stands in a longer text; ``before`` counts bytes modulo 3."""
    text = b64encode(b"\0" * before + raw).decode().rstrip("=")
    # Characters at the edges also hold bits of what stands beside it.
    return text[(0, 2, 3)[before] : len(text) - bool((before + len(raw)) % 3)]


def environment_secrets() -> frozenset[str]:
    """What the environment of this process keeps under names of secrets, and passwords in its addresses."""
    named = {value.strip() for name, value in os.environ.items() if SECRET_SETTING.search(name)}
    return frozenset(named | {_password(value) for value in os.environ.values() if "://" in value})


def _password(address: str) -> str:
    try:
        return unquote(urlsplit(address).password or "")
    except ValueError:
        return ""


def secrets_sent(address: str, headers: Mapping[str, str]) -> set[str]:
    """Everything in a resolved address and headers that nobody should read in an error."""
    secrets = _in_address(address)
    for name, value in headers.items():
        if name.lower() not in _HARMLESS:
            secrets |= {value, *value.split()[1:], _basic_password(value)}
    return secrets


def _basic_password(header: str) -> str:
    scheme, _, credentials = header.partition(" ")
    if scheme.lower() != "basic":
        return ""
    with suppress(ValueError):
        return b64decode(credentials, validate=True).decode().partition(":")[2]
    return ""


def _in_address(address: str) -> set[str]:
    try:
        parts = urlsplit(address)
    except ValueError:
        return {address}
    credentials = parts.netloc.rpartition("@")[0].split(":")
    query = [value for _, value in parse_qsl(parts.query)]
    return {*credentials, *(unquote(part) for part in credentials), *query}
