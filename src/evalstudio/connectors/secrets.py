"""The secrets an agent is sent, and taking them out of what it answers."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

import orjson
from pydantic import BaseModel

from ..base.json_text import json_text
from ..base.paths import Steps, texts_in
from ..base.problems import path_text
from ..base.redaction import SECRET_HEADER, SECRET_SETTING, Redaction, secrets_sent
from ..base.references import UnsetVariable, resolve, values_of
from ..messages import Message
from .contract import ConnectorError, ConnectorSettings, Headers

if TYPE_CHECKING:
    from .replies import AgentReply

Json = dict[str, Any]
_MOST_PLACES = 20
_SCHEMES = ("bearer ", "basic ")


def is_secret_setting(name: object) -> bool:
    """Whether what a config has under this name is a secret, or holds some."""
    text = str(name)
    return bool(SECRET_SETTING.search(text)) or text.lower().endswith("headers")


def config_data(config: object) -> Json:
    """A connector's config as plain data: what differs from the defaults."""
    if isinstance(config, BaseModel):
        return config.model_dump(mode="json", by_alias=True, exclude_defaults=True, fallback=str)
    return dict(cast(Mapping[str, Any], config)) if isinstance(config, Mapping) else {}


def secrets_of(settings: ConnectorSettings[Any], extra_headers: Headers) -> set[str]:
    """What an agent is sent in secret, as far as it can be looked up here.

    Headers, settings and parts of the address count by their names; what stands for ``${NAME}`` always does.
    """
    texts = list(texts_in(config_data(settings.config)))
    return {
        *_in_headers(settings.headers),
        *_in_headers(extra_headers),
        *_in_address(settings.base_url.strip()),
        *values_of(*(text for _, text in texts)),
        *(text for path, text in texts if any(map(is_secret_setting, path))),
    } - {""}


def _in_headers(headers: Headers) -> set[str]:
    secrets = values_of(*headers.values())
    for name, value in headers.items():
        with suppress(UnsetVariable):
            resolved = resolve(value, name)
            if SECRET_HEADER.search(name) or resolved.lower().startswith(_SCHEMES):
                secrets |= secrets_sent("", {name: resolved})
    return secrets


def _in_address(base_url: str) -> Iterator[str]:
    """Passwords, parts of the query that are named like secrets, and references outside the host."""
    try:
        address = resolve(base_url, "baseUrl")
        parts = urlsplit(address)
        password = parts.password
    except (UnsetVariable, ValueError):
        return
    if password:
        credentials = parts.netloc.rpartition("@")[0]
        yield from (password, unquote(password), b64encode(unquote(credentials).encode()).decode())
    yield from (value for name, value in parse_qsl(parts.query) if SECRET_HEADER.search(name))
    host = parts.netloc.rpartition("@")[2]
    yield from (value for value in values_of(base_url) if "://" not in value and value not in host)


def redact_reply(reply: AgentReply, redact: Redaction) -> None:
    """Take the secrets out of an answer and say where they stood."""
    if not redact:
        return
    places: list[Steps] = []
    reply.messages = [
        _without(message, redact, ("messages", number), places)
        for number, message in enumerate(reply.messages)
    ]
    reply.metadata = redacted_data(reply.metadata, redact, ("metadata",), places)
    reply.thread_id = redacted_data(reply.thread_id, redact, ("threadId",), places)
    reply.usage_missing = redacted_data(reply.usage_missing, redact, ("usageMissing",), places)
    reply.redacted = shown_places(places)


def redacted_data(value: Any, redact: Redaction, path: Steps, places: list[Steps]) -> Any:
    """The data without secrets; the same object where it holds none."""
    before = len(places)
    try:
        redacted = redact.everywhere(value, path, places)
    except RecursionError:
        problem = f"{path_text(path)} is nested too deeply to be looked through for secrets"
        raise ConnectorError(problem) from None
    return redacted if len(places) > before else value


def shown_places(places: list[Steps]) -> list[str]:
    """The places as texts, each once, not endlessly many."""
    return list(dict.fromkeys(map(path_text, places)))[:_MOST_PLACES]


def _without(message: Message, redact: Redaction, path: Steps, places: list[Steps]) -> Message:
    fields = message.to_json()
    redacted: Json = redacted_data(fields, redact, path, places)
    if redacted is fields:
        return message
    for before, after in zip(fields.get("tool_calls") or (), redacted.get("tool_calls") or (), strict=True):
        after["function"]["arguments"] = _arguments(before["function"]["arguments"], redact)
    return Message.unread(redacted)


def _arguments(text: str, redact: Redaction) -> str:
    """Arguments of a tool call that are JSON stay JSON, also where the secret is a number."""
    redacted = redact(text)
    if redacted is text:
        return text
    with suppress(orjson.JSONDecodeError, RecursionError):
        return redact(json_text(redact.everywhere(orjson.loads(text))))
    return redacted
