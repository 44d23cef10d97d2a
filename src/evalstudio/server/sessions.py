"""Sessions: the cookie that stands for the token, and the ones that were ended before their time.

A cookie is good until it expires, the token changes or its session is ended. Ended sessions are kept in a
file beside the project's database, so that a restart, and other servers of the same folder, know them too.
"""

from __future__ import annotations

import hmac
import logging
import os
import re
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from ..base.private_files import open_private

log = logging.getLogger("evalstudio")

COOKIE = "evalstudio_session"
LIFETIME = 7 * 24 * 3600
# A file with more ended sessions than this is replaced by one moment before which every session has ended.
MOST_ENDED = 10_000
_EVERYBODY = "*"
_EXPIRES = re.compile(r"[0-9]{1,12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Session:
    """What a genuine cookie says."""

    id: str
    expires: int


def issue(token: str, now: float | None = None) -> str:
    """A new session as a cookie's value."""
    expires = int((now if now is not None else time.time()) + LIFETIME)
    body = f"{expires}.{secrets.token_urlsafe(16)}"
    return f"{body}.{_signature(token, body)}"


def read_session(token: str, cookie: str | None, now: float | None = None) -> Session | None:
    """The session of a cookie that we issued and that has not expired."""
    body, _, signature = (cookie or "").rpartition(".")
    if not hmac.compare_digest(_signature(token, body).encode(), signature.encode()):
        return None
    expires, _, session_id = body.partition(".")
    if not _EXPIRES.fullmatch(expires) or int(expires) <= (now if now is not None else time.time()):
        return None
    return Session(session_id, int(expires))


def session_cookie(headers: Mapping[str, str]) -> str | None:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return cookie.value if cookie else None


def _signature(token: str, body: str) -> str:
    return hmac.new(token.encode(), f"evalstudio session {body}".encode(), sha256).hexdigest()


class EndedSessions:
    """The sessions that were ended by logging out, in memory and in a file, both bounded."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._ended: dict[str, int] = {}
        self._all_before = 0
        self._seen: tuple[int, int] | None = None

    def __contains__(self, session: Session) -> bool:
        self._read()
        return session.id in self._ended or session.expires - LIFETIME < self._all_before

    def add(self, session: Session) -> None:
        self._read()
        self._ended[session.id] = session.expires
        if len(self._ended) > MOST_ENDED:
            self._shorten()
        else:
            self._write(f"{session.id} {session.expires}\n", os.O_APPEND)

    def _shorten(self) -> None:
        """Forget what has expired; if that is not enough, end every session there is."""
        now = int(time.time())
        self._ended = {name: expires for name, expires in self._ended.items() if expires > now}
        if len(self._ended) > MOST_ENDED // 2:
            self._ended, self._all_before = {}, now + 1
        lines = [f"{name} {expires}\n" for name, expires in self._ended.items()]
        self._write("".join([f"{_EVERYBODY} {self._all_before}\n", *lines]), os.O_TRUNC)

    def _write(self, text: str, how: int) -> None:
        if self._path is None:
            return
        try:
            with open(open_private(self._path, os.O_WRONLY | os.O_CREAT | how), "w") as file:
                file.write(text)
        except OSError as error:
            log.warning("%s: cannot be written (%s); a restart forgets who logged out", self._path, error)

    def _read(self) -> None:
        """Read the file again if another server has changed it."""
        if self._path is None:
            return
        with suppress(OSError):
            status = self._path.stat()
            if (seen := (status.st_mtime_ns, status.st_size)) == self._seen:
                return
            for line in self._path.read_text().splitlines():
                name, _, number = line.partition(" ")
                if name == _EVERYBODY and number.isdecimal():
                    self._all_before = max(self._all_before, int(number))
                elif number.isdecimal():
                    self._ended[name] = int(number)
            self._seen = seen
