"""From what went wrong on the wire to words a person understands, and whether another attempt may help."""

from __future__ import annotations

import re
from errno import EACCES, ECONNREFUSED

from aiohttp import (
    ClientConnectionError,
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientError,
    ClientPayloadError,
    ClientResponseError,
    ClientSSLError,
    InvalidURL,
    ServerTimeoutError,
)

from .errors import ConnectorError
from .http_pool import AnswerTooLarge, Redirected
from .line import Line
from .policy import is_temporary, retry_after

EXCERPT_BYTES = 4_000
_LONGEST_EXCERPT = 300
_HTML = re.compile(rb"\s*(<!doctype html|<html|<head|<body)", re.IGNORECASE)
_INVISIBLE = re.compile(r"<(script|style|head)\b.*?(</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)


def explain(error: ClientError | OSError, line: Line, place: str) -> ConnectorError:
    """A failed exchange in words; ``place`` is the address as it may be shown."""
    if isinstance(error, AnswerTooLarge | Redirected):
        return ConnectorError(f"{place} {error}")
    # Without headers it is the reading of the answer that failed, and the status is made up.
    if isinstance(error, ClientResponseError) and error.headers is not None:
        return of_status(error.status, line, place, error.message, retry_after(error.headers))
    if isinstance(error, ClientPayloadError):
        return broken_off(place)
    if isinstance(error, InvalidURL):
        return ConnectorError(f"{place} is not a usable address: check baseUrl")
    if isinstance(error, ServerTimeoutError | TimeoutError):
        seconds = f"{line.policy.connect_seconds:g} s"
        return ConnectorError(f"{place} did not accept a connection within {seconds}: check baseUrl")
    if isinstance(error, ClientConnectorCertificateError | ClientSSLError):
        return ConnectorError(f"{place} could not be reached safely: its TLS certificate or handshake failed")
    if isinstance(error, ClientConnectorError):
        return _unreachable(error, place)
    if isinstance(error, ClientConnectionError | OSError):
        return ConnectorError(f"{place} closed the connection without an answer", again=True)
    text = error.message if isinstance(error, ClientResponseError) else str(error)
    detail = excerpt(text.encode(), line) or type(error).__name__
    return ConnectorError(f"{place} did not answer in proper HTTP: {detail}")


def _unreachable(error: ClientConnectorError, place: str) -> ConnectorError:
    if isinstance(error, ClientConnectorDNSError):
        return ConnectorError(
            f"{place} could not be reached: its host name is not known (DNS). Check baseUrl", again=True
        )
    if error.os_error.errno == EACCES:
        return ConnectorError(f"{place} may not be called: {error.os_error.strerror}")
    if error.os_error.errno == ECONNREFUSED:
        return ConnectorError(
            f"{place} refused the connection: nothing listens there. Is the agent running?", again=True
        )
    reason = error.os_error.strerror or type(error.os_error).__name__
    return ConnectorError(f"{place} could not be reached: {reason}. Check baseUrl", again=True)


def broken_off(place: str) -> ConnectorError:
    return ConnectorError(f"{place} broke off in the middle of its answer")


def of_status(status: int, line: Line, place: str, detail: str, asked: float | None) -> ConnectorError:
    """An answer with a status other than success."""
    said = f": {detail}" if detail else ""
    message = f"{place} {_words(status)}{said}"
    return ConnectorError(line.redact(message), again=is_temporary(status), retry_after=asked)


def _words(status: int) -> str:
    match status:
        case 401 | 403:
            return f"refused the credentials ({status}), check the headers"
        case 404:
            return "has nothing at this address (404), check baseUrl and path"
        case 429:
            return "is getting too many requests (429)"
        case _ if status >= 500:
            return f"failed ({status})"
        case _ if 300 <= status < 400:
            return str(Redirected(status))
        case _:
            return f"refused the request ({status})"


def not_json(body: bytes, content_type: str, line: Line, place: str) -> ConnectorError:
    """A successful answer that cannot be read as JSON."""
    if not body.strip():
        return ConnectorError(f"{place} sent an empty answer where JSON was expected")
    if content_type == "text/html" or _HTML.match(body[:EXCERPT_BYTES]):
        kind = "an HTML page instead of JSON (check baseUrl and path)"
    else:
        kind = "something that is not JSON"
    return ConnectorError(f'{place} sent {kind}; it begins "{excerpt(body, line)}"')


def excerpt(body: bytes, line: Line) -> str:
    """The first words of a body on one line, secrets blotted out before anything is cut off."""
    text = line.redact(body[:EXCERPT_BYTES].decode(errors="replace"))
    if _HTML.match(body[:EXCERPT_BYTES]):
        text = _page_text(text)
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= _LONGEST_EXCERPT else words[: _LONGEST_EXCERPT - 1] + "…"


def _page_text(page: str) -> str:
    """What a person would read on an HTML page: its title, then its text."""
    title = _TITLE.search(page)
    visible = re.sub(r"<[^<>]*>", " ", _INVISIBLE.sub(" ", page))
    return f"{title[1] if title else ''} {visible}"
