"""What makes an agent the one it is; and its secrets, to keep them out of recordings."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel

from .contract import ConnectorSettings, Headers, merge_headers
from .errors import ConnectorError
from .secrets import Redaction, resolve, values_of

# Names that end like this hold what nobody should read: apiKey, access_token, X-Secret, Set-Cookie.
_SECRET = re.compile(
    r"(api|access|private|signing)[-_]?key$|(token|secret|password|passphrase|cookie|authorization|headers"
    r"|credentials?)$",
    re.IGNORECASE,
)
# How patiently an agent is called says nothing about what it answers.
_LIMITS = frozenset({"timeoutSeconds", "timeout_seconds", "maxResponseBytes", "max_response_bytes"})


def config_shown(config: object) -> dict[str, Any]:
    """The config as plain data: what differs from the defaults, without secrets and limits."""
    shown = _without_secrets(_as_data(config))
    return {name: value for name, value in shown.items() if name not in _LIMITS}


def secrets_of(settings: ConnectorSettings[Any], extra_headers: Headers) -> set[str]:
    """What may be secret in an address, headers and a config, as far as it can be looked up here."""
    headers = merge_headers(settings.headers, extra_headers)
    referred = values_of(*headers.values())
    telling: dict[str, str] = {}
    for name, value in headers.items():
        if _SECRET.search(name):
            with suppress(ConnectorError):
                telling[name] = resolve(value, name)
    address = ""
    with suppress(ConnectorError):
        address = resolve(settings.base_url.strip(), "baseUrl")
    held = {*_secret_texts(_as_data(settings.config)), _basic_credentials(address)}
    return {*Redaction.of(address, telling, referred | held).secrets}


def _basic_credentials(address: str) -> str:
    """A name and password in an address, as they are sent in a header."""
    with suppress(ValueError):
        found = urlsplit(address).netloc.rpartition("@")[0]
        return b64encode(unquote(found).encode()).decode()
    return ""


def _as_data(config: object) -> dict[str, Any]:
    if isinstance(config, BaseModel):
        return config.model_dump(mode="json", by_alias=True, exclude_defaults=True, fallback=str)
    return dict(cast(Mapping[str, Any], config)) if isinstance(config, Mapping) else {}


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        fields = cast(Mapping[str, Any], value)
        return {
            name: _without_secrets(item) for name, item in fields.items() if not _SECRET.search(str(name))
        }
    return [_without_secrets(item) for item in cast(list[Any], value)] if isinstance(value, list) else value


def _secret_texts(value: Any, *, secret: bool = False) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in cast(Mapping[str, Any], value).items():
            yield from _secret_texts(item, secret=secret or bool(_SECRET.search(str(name))))
    elif isinstance(value, list):
        for item in cast(list[Any], value):
            yield from _secret_texts(item, secret=secret)
    elif secret and isinstance(value, str):
        yield value
