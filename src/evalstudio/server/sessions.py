"""Sessions: the cookie that stands for the token, and the ones that were ended before their time.

A cookie is good until it expires, the token changes or its session is ended. Ended sessions are kept in the
project's database, so that a restart, and other servers of the same database, know them too.
"""

from __future__ import annotations

import hmac
import logging
import re
import secrets
import time
from collections.abc import Mapping
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from typing import Protocol

from ..base.lazy_dataclass import dataclass
from ..storage.ended_sessions import EVERYBODY
from ..storage.errors import StorageError

log = logging.getLogger("evalstudio")

COOKIE = "evalstudio_session"
LIFETIME = 7 * 24 * 3600
# More ended sessions than this are replaced by one moment: every session that expires before it has ended.
MOST_ENDED = 10_000
_LOOK_SECONDS = 1.0
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


class SessionRecords(Protocol):
    """Where ended sessions are kept."""

    async def end_session(self, session_id: str, expires: int, *, everybody: int, most: int) -> None: ...
    async def read_ended_sessions(self) -> dict[str, int]: ...


class EndedSessions:
    """The sessions that were ended by logging out: those of this server at once, those of others soon."""

    def __init__(self, records: SessionRecords | None = None) -> None:
        self._records = records
        self._known: dict[str, int] = {}
        # Those that could not be stored; they are few, because a database that is away lets nobody work.
        self._unsaved: set[str] = set()
        self._looked = float("-inf")

    def __contains__(self, session: Session) -> bool:
        all_before = self._known.get(EVERYBODY, 0)
        return session.id in self._known or session.id in self._unsaved or session.expires * 1000 < all_before

    async def refresh(self) -> None:
        """Learn what other servers were told, not more often than once a second."""
        if self._records is None or time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        # Set first: while the database does not answer, one request waits for it and not all of them.
        self._looked = time.monotonic()
        try:
            self._known = await self._records.read_ended_sessions()
        except StorageError as error:
            log.warning("Who logged out elsewhere is not known: %s", error)

    async def add(self, session: Session) -> None:
        self._unsaved.add(session.id)
        if self._records is None:
            return
        everybody = (int(time.time()) + LIFETIME + 1) * 1000
        try:
            await self._records.end_session(
                session.id, session.expires * 1000, everybody=everybody, most=MOST_ENDED
            )
            self._known = await self._records.read_ended_sessions()
        except StorageError as error:
            log.warning("A logout could not be stored (%s); a restart and other servers forget it", error)
        else:
            self._unsaved.discard(session.id)
