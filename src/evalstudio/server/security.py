"""Which requests are refused before any route sees them, and the token and cookie that open the others.

What a request looks like is judged by one pure function; who sent it by ``AccessControl``, which remembers
who guessed and who logged out. The middleware is a thin shell around both.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from ..base.lazy_dataclass import dataclass
from ..base.private_files import keep_private, open_private
from .errors import error_response
from .policy import LARGEST_HEADERS, LARGEST_LOGIN, MOST_HEADERS, ServerPolicy
from .sessions import EndedSessions, issue, read_session, session_cookie
from .throttle import TokenThrottle, TooManyTokens, caller_of

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# Answered without a token: they reveal nothing about the project.
SESSION_PATH = "/api/session"
_WITHOUT_SESSION = frozenset({"/api/health", "/api/ready"})
OPEN_PATHS = _WITHOUT_SESSION | {SESSION_PATH}


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
        return self.path == SESSION_PATH and self.method == "POST"

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
    return _cross_site(facts) or _too_large(facts, policy) or _not_json(facts)


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
    length, most = facts.headers.get("content-length", "0"), largest_body(facts.path, policy.largest_body)
    if length.isdecimal() and int(length[:20]) > most:
        return Refusal(413, f"The body is larger than {most:,} bytes.")
    return None


def largest_body(path: str, most: int) -> int:
    """How large a body may be: whoever logs in sends a token and nothing else."""
    return min(most, LARGEST_LOGIN) if path == SESSION_PATH else most


def _not_json(facts: RequestFacts) -> Refusal | None:
    kind = facts.headers.get("content-type", "").partition(";")[0].strip().lower()
    if facts.is_api and facts.has_body and kind != "application/json":
        return Refusal(415, "Bodies are JSON: send Content-Type: application/json.")
    return None


class AccessControl:
    """Who may call: whoever has a session, or presents the token and has not guessed too often."""

    def __init__(self, token: str | None, ended: EndedSessions | None = None) -> None:
        self.token = token
        self._ended = ended if ended is not None else EndedSessions()
        self._throttle = TokenThrottle()

    def has_session(self, cookie: str | None) -> bool:
        session = read_session(self.token, cookie) if self.token is not None else None
        return session is not None and session not in self._ended

    def log_in(self, address: str, text: str) -> str | None:
        """A new session for whoever knows the token."""
        return issue(self.token) if self.token is not None and self.is_token(address, text) else None

    async def log_out(self, cookie: str | None) -> None:
        session = read_session(self.token, cookie) if self.token is not None else None
        if session is not None and session not in self._ended:
            await self._ended.add(session)

    async def refresh(self, facts: RequestFacts) -> None:
        """Learn who logged out at another server, before a session is believed."""
        if self.token is None or not facts.is_api or facts.path in _WITHOUT_SESSION:
            return
        if read_session(self.token, session_cookie(facts.headers)) is not None:
            await self._ended.refresh()

    def is_token(self, address: str, text: str) -> bool:
        """Compare a presented token, which counts first; raises ``TooManyTokens``."""
        caller = caller_of(address)
        self._throttle.add(caller)
        if self.token is None or not hmac.compare_digest(self.token.encode(), text.encode()):
            return False
        self._throttle.was_right(caller)
        return True

    def refuse(self, facts: RequestFacts, address: str) -> Refusal | None:
        """Why this request is refused, or nothing. What logging in presents is compared by its route."""
        if self.token is None or not facts.is_api:
            return None
        if facts.is_login and (wait := self._throttle.must_wait(caller_of(address))) is not None:
            raise TooManyTokens(wait)
        if facts.path in OPEN_PATHS or self.is_known(facts, address):
            return None
        message = "A token is needed: send it as Authorization: Bearer …, or log in."
        return Refusal(401, message, {"WWW-Authenticate": 'Bearer realm="evalstudio"'})

    def is_known(self, facts: RequestFacts, address: str) -> bool:
        """Whether a request comes with a session or the token; raises ``TooManyTokens``.

        With a session no token is looked at, so that nobody who guesses can lock out whoever has logged in.
        """
        if self.token is None or self.has_session(session_cookie(facts.headers)):
            return True
        scheme, _, credentials = facts.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.is_token(address, credentials.strip())


class Guard:
    """The middleware: refuses what must be refused and lets the rest through."""

    def __init__(self, app: ASGIApp, policy: ServerPolicy, access: AccessControl) -> None:
        self._app, self._policy, self._access = app, policy, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        facts = facts_of_request(scope)
        await self._access.refresh(facts)
        refusal = self._refuse(facts, address_of(scope))
        if refusal is None:
            await self._app(scope, receive, send)
            return
        await error_response(refusal.status, refusal.message, headers=refusal.headers)(scope, receive, send)

    def _refuse(self, facts: RequestFacts, address: str) -> Refusal | None:
        try:
            return refuse(facts, self._policy) or self._access.refuse(facts, address)
        except TooManyTokens as error:
            return Refusal(429, str(error), error.headers)


def address_of(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def token_of_environment() -> str | None:
    return os.environ.get("EVALSTUDIO_TOKEN", "").strip() or None


def token_of_project(folder: Path) -> tuple[str, bool]:
    """The token in a file only its owner can read; whether it is new comes second."""
    path = folder / "data" / "server.token"
    with suppress(FileNotFoundError):
        keep_private(path)
        if text := path.read_text().strip():
            return text, False
    token = secrets.token_urlsafe(32)
    with open(open_private(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), "w") as file:
        file.write(token)
    return token, True
