"""Secrets in definitions: finding them, keeping them sealed, showing a mask in their place.

A secret is a literal value of a header or a setting that is named like one. Sealed values travel through
storage and snapshots as they are; they are opened only where an agent is called.
"""

from __future__ import annotations

import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, urlsplit

from ..base.addresses import origin
from ..base.paths import texts_in
from ..base.private_files import keep_private, open_private
from ..base.problems import FieldPath, InvalidInput, Problem, ProblemList
from ..base.redaction import SECRET_HEADER as _HEADER
from ..base.redaction import SECRET_SETTING as _SETTING
from ..base.references import HOLDS_ONE as _REFERENCE
from ..base.references import PUBLIC_VARIABLES, names_in
from ..conversation.definitions import Persona
from .entities import name_key

if TYPE_CHECKING:
    from cryptography.fernet import Fernet
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

MASK = "********"
KEY_VARIABLE = "EVALSTUDIO_SECRET_KEY"
_SEALED = "sealed:v1:"
# Sealed so that the same text is always the same; without it, with Fernet, as earlier versions did.
_SAME = "siv."
# An empty text cannot be sealed so; this stands before every one.
_FIRST = b"="
_OWN_VARIABLE = re.compile(rf"\$\{{\s*(?!{PUBLIC_VARIABLES})EVALSTUDIO_", re.IGNORECASE)
_SCHEMES = ("bearer ", "basic ")
# Where a definition has settings of a type, or of whom to call.
_SETTINGS = ("config", "alarm")
# Settings that say where a connector talks to: by the last word of their names, or by how they look.
_PLACES = frozenset(
    word
    for line in (
        "url urls uri uris host hosts hostname endpoint endpoints address addresses server servers domain",
        "origin proxy port region tenant gateway socket dsn site base cluster account",
    )
    for word in line.split()
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ADDRESS = re.compile(r"://|^\[?[0-9a-f]*[.:][0-9a-f.:]*[.:][0-9a-f.:]*\]?$|^[\w.-]+:\d+(/|$)", re.IGNORECASE)
_HOST = re.compile(r"([\w-]+\.)+[a-z]{2,}(/.*)?", re.IGNORECASE)
# Dotted, and still no host.
_DOTTED = frozenset({"path", "paths", "field", "fields", "model", "models", "module", "function", "version"})


def is_secret(header: str, value: str) -> bool:
    """Whether a header's value must not be shown: not a reference, and named or written like a secret."""
    if _REFERENCE.fullmatch(value):
        return False
    looks_secret = _HEADER.search(header) or value.lower().startswith(_SCHEMES)
    return bool(looks_secret) or _stands_for_one(value)


def may_hide(name: str) -> bool:
    """Whether what is found under this name may be a secret, or hold one."""
    return bool(_HEADER.search(name) or _SETTING.search(name)) or name == "headers"


def secrets_in(body: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    """Where a definition, as plain data, holds secrets, and what they are."""
    headers: Mapping[str, object] = body.get("headers") or {}
    for name, value in headers.items():
        if isinstance(value, str) and is_secret(name, value):
            yield ("headers", name), value
    for name in _SETTINGS:
        yield from secret_settings(body.get(name), (name,))


def secret_settings(data: object, place: FieldPath = ()) -> Iterator[tuple[FieldPath, str]]:
    """Where settings hold secrets: texts under a name like that of a secret, unless they are references."""
    for path, value in texts_in(data, place):
        named = any(isinstance(step, str) and _SETTING.search(step) for step in path[len(place) :])
        if _is_literal(value) and (named or _stands_for_one(value)):
            yield path, value


def _settings_in(body: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    """The texts in which a connector, or the alarm of a monitor, may hold secrets and addresses."""
    for name in _SETTINGS:
        yield from texts_in(body.get(name), (name,))


def _stands_for_one(value: str) -> bool:
    return value == MASK or value.startswith(_SEALED)


def _is_literal(value: str) -> bool:
    return bool(value) and not _REFERENCE.fullmatch(value)


def changed(body: Mapping[str, Any], change: Callable[[FieldPath, str], str | None]) -> dict[str, Any]:
    """The definition with each of its secrets changed; none takes the secret out."""
    done = cast(dict[str, Any], _copy(body))
    for path, value in list(secrets_in(body)):
        holder: Any = done
        for step in path[:-1]:
            holder = holder[step]
        replacement = change(path, value)
        if replacement is not None:
            holder[path[-1]] = replacement
        elif isinstance(holder, dict):
            del holder[path[-1]]
        else:
            holder[path[-1]] = ""
    return done


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in cast(Mapping[str, Any], value).items()}
    return [_copy(item) for item in cast(list[Any], value)] if isinstance(value, list) else value


def masked(body: Mapping[str, Any]) -> dict[str, Any]:
    """The definition as it may be shown."""
    return changed(body, lambda _path, _value: MASK)


def restored(body: Mapping[str, Any], stored: Mapping[str, Any] | None) -> dict[str, Any]:
    """The definition with masks replaced by what is kept; at another address they are dropped instead."""
    known = dict(secrets_in(stored)) if stored is not None else {}
    same_address = stored is None or _goes_no_further(body, stored)
    problems = ProblemList()

    def restore(path: FieldPath, value: str) -> str | None:
        if value != MASK:
            return value
        if same_address and path not in known:
            problems.append(Problem(f"{MASK} stands for a secret that is kept, and none is kept here", path))
        return known.get(path) if same_address else None

    whole = changed(body, restore)
    problems.check()
    return whole


def _goes_no_further(body: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Whether the secrets of a definition go to those they were given to, and to nobody else."""
    recipients, before = (
        {name_key(name) for name in one.get("connectors", ()) if isinstance(name, str)}
        for one in (body, stored)
    )
    return addressee(body) == addressee(stored) and recipients <= before


def addressee(body: Mapping[str, Any]) -> tuple[Any, ...]:
    """Whom a connector's secrets are given to: a kind of connector and whatever says where it talks to."""
    places = [place for name in _SETTINGS for place in _addresses_in(body.get(name), (name,))]
    return body.get("type"), origin(body.get("baseUrl")), *sorted(places)


def _addresses_in(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The settings that name a server, by their place or by what they look like."""
    if isinstance(value, Mapping):
        for name, item in cast(Mapping[str, Any], value).items():
            yield from _addresses_in(item, (*path, name))
    elif isinstance(value, list):
        for number, item in enumerate(cast(list[Any], value)):
            yield from _addresses_in(item, (*path, str(number)))
    elif value is not None and not isinstance(value, bool) and _is_place(path, str(value)):
        yield "\n".join(path), origin(str(value))


def _is_place(path: tuple[str, ...], text: str) -> bool:
    if any(_SETTING.search(name) for name in path):
        # A secret itself, which is masked on one side and not on the other.
        return False
    last_words = {words[-1].lower() for name in path if (words := _WORDS.findall(name))}
    if last_words & _PLACES or _ADDRESS.search(text):
        return True
    return not last_words & _DOTTED and bool(_HOST.fullmatch(text))


def check_recipient(persona: Persona, connector_id: str | None, connector_name: str | None) -> None:
    """Refuse to send a persona's secret headers to a connector that it does not name."""
    names = [name for name, value in persona.headers.items() if is_secret(name, value) or "${" in value]
    if names and connector_id not in persona.connector_ids:
        message = (
            f'persona "{persona.name}" has secret headers ({", ".join(names)}) that were not given to the '
            f'connector "{connector_name}"'
        )
        hint = "name the connector in the persona's connectors (connectorIds in the API)"
        raise InvalidInput(Problem(message, hint=hint))


def check_address(address: str | None, path: FieldPath = ("baseUrl",)) -> None:
    """Refuse an address with a secret written into it: it would be shown wherever the address is."""
    try:
        parts = urlsplit(address or "")
        password = parts.password
    except ValueError:
        return
    query = {
        value for name, value in parse_qsl(parts.query) if _SETTING.search(name) or name.lower() == "key"
    }
    if any(map(_is_literal, {password or ""} | query)):
        hint = "use a header for it, or a reference such as ${AGENT_KEY}"
        raise InvalidInput(Problem("holds a literal secret", path, hint))


def is_address(text: str) -> bool:
    """Whether a text has a scheme and a host; one that begins with a reference may have them."""
    if text.startswith("${"):
        return True
    try:
        parts = urlsplit(text)
        return "://" in text and bool(parts.scheme) and bool(parts.hostname)
    except ValueError:
        return False


def _resolved_texts(body: Mapping[str, Any]) -> dict[FieldPath, str]:
    """The texts of a definition in which references are looked up."""
    headers: Mapping[str, str] = body.get("headers") or {}
    texts: dict[FieldPath, str] = {("baseUrl",): body.get("baseUrl") or ""}
    texts |= {("headers", name): text for name, text in headers.items()}
    return texts | dict(_settings_in(body))


def check_variables(
    body: Mapping[str, Any], stored: Mapping[str, Any] | None, allowed: Collection[str]
) -> None:
    """Refuse references of a definition from elsewhere to variables that were not given to it.

    What is stored may stay, as long as it goes to nobody else.
    """
    known = _resolved_texts(stored) if stored is not None and _goes_no_further(body, stored) else {}
    hint = "add it to allowedVariables in the config file, or define this in a file of the project"
    ProblemList(
        Problem(f"refers to the environment variable {name}, which is not allowed here", path, hint)
        for path, text in _resolved_texts(body).items()
        if text != known.get(path) and not _OWN_VARIABLE.search(text)
        for name in names_in(text)
        if name not in allowed and not name.startswith(PUBLIC_VARIABLES)
    ).check()


def check_references(body: Mapping[str, Any]) -> None:
    """Refuse references to our own secrets: a definition must not be able to send them anywhere."""
    texts = _resolved_texts(body)
    message = "refers to a variable of the server itself, which no agent may see"
    ProblemList(Problem(message, path) for path, text in texts.items() if _OWN_VARIABLE.search(text)).check()


class SecretBox:
    """Seals and opens secrets with the key of one project, made when it is first needed."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file

    def seal(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The definition with its secrets sealed; what is sealed stays as it is."""
        return changed(body, lambda _path, value: self.seal_text(value))

    def open(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The definition with its secrets readable, for calling an agent."""
        return changed(body, lambda _path, value: self.open_text(value))

    def seal_text(self, text: str) -> str:
        if text.startswith(_SEALED):
            return text
        sealed = self._siv.encrypt(_FIRST + text.encode(), None)
        return _SEALED + _SAME + urlsafe_b64encode(sealed).decode()

    def open_text(self, text: str) -> str:
        if not text.startswith(_SEALED):
            return text
        from cryptography.exceptions import InvalidTag
        from cryptography.fernet import InvalidToken

        sealed = text.removeprefix(_SEALED)
        try:
            if sealed.startswith(_SAME):
                opened = self._siv.decrypt(urlsafe_b64decode(sealed.removeprefix(_SAME)), None)
                return opened.removeprefix(_FIRST).decode()
            return self._fernet.decrypt(sealed).decode()
        except (InvalidToken, InvalidTag, ValueError):
            raise InvalidInput(
                f"a secret was sealed with another key than {self._key_file}. "
                f"Bring that key back (or set {KEY_VARIABLE}), or enter the secret anew."
            ) from None

    @cached_property
    def _siv(self) -> AESSIV:
        """Seals a text always as the same one: a snapshot in which nothing changed has the same hash."""
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        _ = self._fernet
        return AESSIV(sha256(b"evalstudio siv " + self._key).digest())

    @cached_property
    def _key(self) -> bytes:
        variable = os.environ.get(KEY_VARIABLE, "").strip()
        return variable.encode() if variable else _key_in(self._key_file)

    @cached_property
    def _fernet(self) -> Fernet:
        """Checks the key, and opens what earlier versions sealed."""
        from cryptography.fernet import Fernet

        variable = os.environ.get(KEY_VARIABLE, "").strip()
        try:
            return Fernet(self._key)
        except ValueError:
            where = KEY_VARIABLE if variable else str(self._key_file)
            message = f"{where} holds no usable key: 32 bytes in URL-safe base64 are needed"
            raise InvalidInput(message) from None


def refuse_sealed(body: Mapping[str, Any]) -> None:
    """What comes from outside must not pass for something we have sealed."""
    ProblemList(
        Problem("begins like a sealed value", path, "give the secret itself")
        for path, value in secrets_in(body)
        if value.startswith(_SEALED)
    ).check()


def _key_in(path: Path) -> bytes:
    """The key in a file only its owner can read; made whole or not at all."""
    with suppress(FileNotFoundError):
        keep_private(path)
        return path.read_bytes().strip()
    fresh = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    with open(open_private(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY), "wb") as file:
        file.write(urlsafe_b64encode(os.urandom(32)))
        file.flush()
        os.fsync(file.fileno())
    try:
        # Linking fails where another process was faster; then its key is the key.
        with suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        fresh.unlink()
    return path.read_bytes().strip()
