"""Which requests are refused before any route sees them, and the token and cookie that open the others.

The decision is one pure function of the request and the policy; the middleware is a thin shell around it.
"""

from __future__ import annotations

import hmac
import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from .errors import error_response
from .policy import LARGEST_HEADERS, MOST_HEADERS, ServerPolicy

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# Answered without a token: they reveal nothing about the project.
OPEN_PATHS = frozenset({"/api/health", "/api/ready", "/api/session"})
_WRONG_TOKENS = 10
_WRONG_SECONDS = 60.0
_MOST_CALLERS = 10_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request goes no further."""

    status: int
    message: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What the decision looks at."""

    method: str
    path: str
    headers: Mapping[str, str]
    header_bytes: int = 0
    header_count: int = 0
    hosts: tuple[str, ...] = ()

    @property
    def is_api(self) -> bool:
        return self.path == "/api" or self.path.startswith("/api/")

    @property
    def is_login(self) -> bool:
        return self.path == "/api/session" and self.method == "POST"

    @property
    def has_body(self) -> bool:
        return "transfer-encoding" in self.headers or self.headers.get("content-length", "0") != "0"


def facts_of_request(scope: Scope) -> RequestFacts:
    raw: list[tuple[bytes, bytes]] = scope["headers"]
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        merge = key == "cookie" and key in headers
        headers[key] = f"{headers[key]}; {text}" if merge else headers.get(key, text)
    hosts = tuple(value.decode("latin-1") for name, value in raw if name.lower() == b"host")
    size = sum(len(name) + len(value) + 4 for name, value in raw)
    return RequestFacts(scope["method"], scope["path"], headers, size, len(raw), hosts)


def refuse(facts: RequestFacts, policy: ServerPolicy) -> Refusal | None:
    """Why this request is refused, or nothing."""
    if facts.header_bytes > LARGEST_HEADERS or facts.header_count > MOST_HEADERS:
        return Refusal(431, f"The headers are larger than {LARGEST_HEADERS:,} bytes or too many.")
    if len(facts.hosts) != 1 or not policy.allows_host(facts.hosts[0]):
        message = "This host name is not one of this server's. Add it to allowedHosts in the config file."
        return Refusal(403, message)
    return _cross_site(facts) or _too_large(facts, policy) or _not_json(facts) or _no_token(facts, policy)


def _cross_site(facts: RequestFacts) -> Refusal | None:
    """Browsers say where a request comes from; other programs say nothing and bring no cookie."""
    if facts.method in SAFE_METHODS and not facts.is_api:
        return None
    origin = facts.headers.get("origin")
    foreign = facts.headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
    foreign = foreign or (origin is not None and not _is_own(origin, facts.hosts[0]))
    return Refusal(403, "Requests from other sites are refused.") if foreign else None


def _is_own(origin: str, host: str) -> bool:
    scheme, separator, rest = origin.partition("://")
    if not separator or scheme not in ("http", "https"):
        return False
    default = ":443" if scheme == "https" else ":80"
    return rest.lower().removesuffix(default) == host.strip().lower().removesuffix(default)


def _too_large(facts: RequestFacts, policy: ServerPolicy) -> Refusal | None:
    length = facts.headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > policy.largest_body:
        return Refusal(413, f"The body is larger than {policy.largest_body:,} bytes.")
    return None


def _not_json(facts: RequestFacts) -> Refusal | None:
    kind = facts.headers.get("content-type", "").partition(";")[0].strip().lower()
    if facts.is_api and facts.has_body and kind != "application/json":
        return Refusal(415, "Bodies are JSON: send Content-Type: application/json.")
    return None


def _no_token(facts: RequestFacts, policy: ServerPolicy) -> Refusal | None:
    if policy.token is None or not facts.is_api or facts.path in OPEN_PATHS:
        return None
    if shows_token(policy.token, facts.headers.get("authorization"), session_cookie(facts.headers)):
        return None
    message = "A token is needed: send it as Authorization: Bearer …, or log in."
    return Refusal(401, message, {"WWW-Authenticate": 'Bearer realm="evalstudio"'})


def session_cookie(headers: Mapping[str, str]) -> str | None:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return cookie.value if cookie else None


class TokenThrottle:
    """Counts wrong tokens per caller, so that nobody can go on guessing."""

    def __init__(self) -> None:
        self._seen: dict[str, list[float]] = {}

    def must_wait(self, caller: str) -> float | None:
        now = time.monotonic()
        recent = [moment for moment in self._seen.get(caller, ()) if moment > now - _WRONG_SECONDS]
        if len(recent) < _WRONG_TOKENS:
            return None
        return _WRONG_SECONDS - (now - recent[-_WRONG_TOKENS])

    def add(self, caller: str) -> None:
        if caller not in self._seen and len(self._seen) >= _MOST_CALLERS:
            self._seen.pop(next(iter(self._seen)))
        self._seen[caller] = [*self._seen.get(caller, [])[-_WRONG_TOKENS:], time.monotonic()]


class Guard:
    """The middleware: refuses what must be refused and lets the rest through."""

    def __init__(self, app: ASGIApp, policy: ServerPolicy) -> None:
        self._app, self._policy = app, policy
        self._wrong = TokenThrottle()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        facts = facts_of_request(scope)
        refusal = refuse(facts, self._policy) or self._too_often(facts, scope)
        if refusal is None:
            await self._app(scope, receive, self._watched(facts, scope, send))
            return
        if refusal.status == 401 and "authorization" in facts.headers:
            refusal = self._too_often(facts, scope, force=True) or refusal
            self._wrong.add(_caller(scope))
        await error_response(refusal.status, refusal.message, headers=refusal.headers)(scope, receive, send)

    def _too_often(self, facts: RequestFacts, scope: Scope, *, force: bool = False) -> Refusal | None:
        if self._policy.token is None or not (facts.is_login or force):
            return None
        if (wait := self._wrong.must_wait(_caller(scope))) is None:
            return None
        return Refusal(429, "Too many wrong tokens; wait a while.", {"Retry-After": str(int(wait) + 1)})

    def _watched(self, facts: RequestFacts, scope: Scope, send: Send) -> Send:
        """Logging in with a wrong token is only known from the answer."""
        if not facts.is_login:
            return send

        async def watched(message: Mapping[str, object]) -> None:
            if message["type"] == "http.response.start" and message["status"] == 401:
                self._wrong.add(_caller(scope))
            await send(dict(message))

        return watched


def _caller(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


COOKIE = "evalstudio_session"
LIFETIME = 7 * 24 * 3600


def is_token(token: str, text: str) -> bool:
    return hmac.compare_digest(token.encode(), text.encode())


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
    scheme, _, credentials = (authorization or "").partition(" ")
    if scheme.lower() == "bearer" and is_token(token, credentials.strip()):
        return True
    return cookie is not None and is_session(token, cookie)


def _signature(token: str, expires: str) -> str:
    return hmac.new(token.encode(), f"evalstudio session {expires}".encode(), sha256).hexdigest()


def token_of_environment() -> str | None:
    return os.environ.get("EVALSTUDIO_TOKEN", "").strip() or None


def token_of_project(folder: Path) -> tuple[str, bool]:
    """The token in a file only its owner can read; whether it is new comes second."""
    path = folder / "data" / "server.token"
    with suppress(FileNotFoundError):
        if text := path.read_text().strip():
            return text, False
    path.parent.mkdir(parents=True, exist_ok=True)
    token = secrets.token_urlsafe(32)
    with open(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w") as file:
        file.write(token)
    return token, True
