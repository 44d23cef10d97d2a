"""Tokens and the login cookie: a cookie is proof that the token was shown, never the token itself."""

from __future__ import annotations

import hmac
import time
from hashlib import sha256

COOKIE = "evalstudio_session"
LIFETIME = 7 * 24 * 3600


def is_token(token: str, given: str) -> bool:
    return hmac.compare_digest(token.encode(), given.encode())


def issue(token: str, now: float | None = None) -> str:
    """A cookie value that is good until it expires or the token changes."""
    expires = str(int((now if now is not None else time.time()) + LIFETIME))
    return f"{expires}.{_signature(token, expires)}"


def is_session(token: str, cookie: str, now: float | None = None) -> bool:
    expires, _, signature = cookie.partition(".")
    if not hmac.compare_digest(_signature(token, expires).encode(), signature.encode()):
        return False
    return int(expires) > (now if now is not None else time.time())


def shows_token(token: str, authorization: str | None, cookie: str | None) -> bool:
    """Whether a request carries the token, or the cookie that stands for it."""
    scheme, _, given = (authorization or "").partition(" ")
    if scheme.lower() == "bearer" and is_token(token, given.strip()):
        return True
    return cookie is not None and is_session(token, cookie)


def _signature(token: str, expires: str) -> str:
    return hmac.new(token.encode(), f"evalstudio session {expires}".encode(), sha256).hexdigest()
