"""References to the environment in addresses and headers, and keeping what they stand for out of sight."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from ..base.json_text import json_text
from .contract import ConnectorError

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_SHORTEST = 4
# Headers that say how to talk rather than who is talking.
_HARMLESS = frozenset({"accept", "accept-language", "cache-control", "content-type", "user-agent"})


def resolve(text: str, field: str) -> str:
    """The text with every ``${NAME}`` replaced from the environment."""

    def value_of(reference: re.Match[str]) -> str:
        value = os.environ.get(reference[1], "").strip()
        if not value:
            raise ConnectorError(
                f"{field} refers to the environment variable {reference[1]}, which is not set. "
                f"Set {reference[1]} and try again."
            )
        return value

    return _REFERENCE.sub(value_of, text) if "${" in text else text


def values_of(*texts: str) -> set[str]:
    """What the references in these texts stand for."""
    return {os.environ.get(name, "").strip() for text in texts for name in _REFERENCE.findall(text)}


def shown_address(address: str) -> str:
    """An address as it may be shown: references as they are written, no credentials, no query."""
    bare = address.partition("?")[0].partition("#")[0]
    scheme, found, rest = bare.rpartition("://")
    place, slash, path = rest.partition("/")
    return scheme + found + place.rpartition("@")[2] + slash + path


@dataclass(slots=True, frozen=True)
class Redaction:
    """Blots secrets out of a text, should an agent have echoed them."""

    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, base_url: str, headers: Mapping[str, str], referred: Iterable[str] = ()) -> Redaction:
        """Everything in the resolved address and headers that nobody should read in an error."""
        found = set(referred) | set(_in_address(base_url))
        for name, value in headers.items():
            if name.lower() not in _HARMLESS:
                found |= {value, *value.split()[1:]}
        found |= {json_text(secret)[1:-1] for secret in found}
        # The longest first: a secret may contain another.
        return cls(tuple(sorted((s for s in found if len(s) >= _SHORTEST), key=len, reverse=True)))

    def __call__(self, text: str) -> str:
        for secret in self.secrets:
            if secret in text:
                text = text.replace(secret, "***")
        return text


def _in_address(base_url: str) -> Iterable[str]:
    try:
        parts = urlsplit(base_url)
    except ValueError:
        return [base_url]
    credentials = parts.netloc.rpartition("@")[0].split(":")
    query = [value for _, value in parse_qsl(parts.query)]
    return [*credentials, *(unquote(part) for part in credentials), *query]
