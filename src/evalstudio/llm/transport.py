"""The HTTP client all providers share, and what goes wrong with it in words a person understands.

Replies are bounded, redirects and retries are not its own. Libraries wrap each other's errors, so the status,
the headers and the cause are looked for along the chain.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import cast
from urllib.parse import urlsplit

import httpx2
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelQuotaExceededError,
    UnexpectedModelBehavior,
)

from ..base.addresses import is_local
from ..base.json_text import json_text
from ..base.redaction import Redaction
from ..base.retry import retry_after
from ..base.text import excerpt
from ..version import __version__
from .limits import Failure
from .settings import Target

_LONGEST_DETAIL = 300
_LONGEST_RAW = 20_000
# Google says in the body how long to wait.
_DELAY = re.compile(r'"retryDelay":\s*"(\d{1,6}(?:\.\d+)?)s"')


def explain(error: Exception, target: Target, redact: Redaction, seconds: float) -> Failure:
    """Why the call failed, whether to try again, and what the person can do."""
    failure = _of_status(error, target) or _of_connection(error, target, seconds)
    if failure is None and isinstance(error, ModelAPIError | UnexpectedModelBehavior):
        failure = Failure(
            f"{target.place} sent a reply outside the protocol: {_excerpt(str(error))}. "
            f"Check {target.setting('baseUrl')}"
        )
    if failure is None:
        detail = f"{type(error).__name__}: {_excerpt(str(error))}"
        failure = Failure(f"{target.place} could not be asked: {detail}")
    raw = redact(failure.raw) if failure.raw else None
    return replace(failure, message=redact(failure.message), raw=raw)


def _of_status(error: Exception, target: Target) -> Failure | None:
    source = next((e for e in _chain(error) if isinstance(_attribute(e, "status_code"), int)), None)
    if source is None:
        return None
    status = cast(int, _attribute(source, "status_code"))
    body = _attribute(source, "body")
    headers = _attribute(source, "headers") or _attribute(_attribute(source, "response"), "headers")
    wait = retry_after(cast(Mapping[str, str], headers)) if isinstance(headers, Mapping) else None
    if wait is None and (delay := _DELAY.search(_raw(body))):
        wait = float(delay[1])
    # No money left comes as 429 too, but does not pass with time.
    code = _attribute(source, "code") or _attribute(source, "provider_error_code")
    no_quota = isinstance(error, ModelQuotaExceededError) or code == "insufficient_quota"
    out_of_credit = no_quota or status == 402
    again = (status == 429 and not out_of_credit) or status >= 500
    refused_key = isinstance(error, ModelAuthenticationError) or status in (401, 403)
    detail = _detail(body)
    message = _words(status, target, out_of_credit, refused_key) + (f": {detail}" if detail else "")
    throttled = status == 429 and again
    return Failure(message, status, again, throttled, wait if again else None, _raw(body) or None)


def _words(status: int, target: Target, out_of_credit: bool, refused_key: bool) -> str:
    place = target.place
    if out_of_credit:
        return f"the account at {place} has no credit left ({status})"
    if refused_key:
        return f"the key was refused by {place} ({status}): check {target.setting('apiKey')}"
    if status == 404:
        return (
            f'{place} does not know the model "{target.model}" (404): '
            f"check llmSettings.models and {target.setting('baseUrl')}"
        )
    if status == 429:
        return f"{place} is getting too many requests (429): lower llmSettings.concurrency or try later"
    if status >= 500:
        return f"{place} failed ({status})"
    return f"{place} refused the request ({status})"


def _of_connection(error: Exception, target: Target, seconds: float) -> Failure | None:
    for cause in _chain(error):
        if isinstance(cause, ReplyRefused):
            return Failure(f"{target.place} {cause}")
        if isinstance(cause, TimeoutError | httpx2.TimeoutException):
            late = f"{target.place} did not answer within {seconds:g} s (llmSettings.timeoutSeconds)"
            return Failure(late, again=True)
        if isinstance(cause, httpx2.TransportError | OSError):
            reason = _excerpt(str(cause) or type(cause).__name__)
            hint = f"Check {target.setting('baseUrl')}"
            return Failure(f"{target.place} could not be reached: {reason}. {hint}", again=True)
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__


def _attribute(source: object, name: str) -> object:
    return cast(object, getattr(source, name, None))


def _raw(body: object) -> str:
    if body is None:
        return ""
    return (body if isinstance(body, str) else json_text(body))[:_LONGEST_RAW]


def _detail(body: object) -> str:
    """The provider's own words, in whichever of the usual places they are."""
    value = body
    for key in ("error", "message", "detail"):
        if isinstance(value, Mapping):
            fields = cast(Mapping[str, object], value)
            value = fields.get(key, fields)
    return _excerpt(_raw(value))


def _excerpt(text: str) -> str:
    return excerpt(text, _LONGEST_DETAIL)


_CONNECT_SECONDS = 10.0


class ReplyRefused(Exception):
    """A reply that is not read to its end; the message goes after the provider's name."""


class _Bounded(httpx2.AsyncByteStream):
    """A reply's bytes, up to a limit."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int) -> None:
        self._inner = inner
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for chunk in self._inner:
            seen += len(chunk)
            if seen > self._most:
                raise _too_large(self._most)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def _too_large(most: int) -> ReplyRefused:
    return ReplyRefused(f"sent a reply of more than {most:,} bytes (llmSettings.maxResponseBytes)")


def open_client(base_url: str, seconds: float, most_bytes: int, most_connections: int) -> httpx2.AsyncClient:
    """A pooled client. Redirects are not followed: they would carry the key to another address."""

    async def bound(response: httpx2.Response) -> None:
        # A small compressed reply may unfold into a huge one, so none is asked for and none is read.
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ReplyRefused("sent a compressed reply, which was not asked for")
        if response.is_redirect:
            raise ReplyRefused(f"answered with a redirect ({response.status_code}); give its final address")
        length = response.headers.get("content-length", "")
        if length.isdecimal() and int(length) > most_bytes:
            raise _too_large(most_bytes)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(response.stream, most_bytes)

    async def introduce(request: httpx2.Request) -> None:
        # Libraries add theirs beside one another; some servers refuse a header that comes twice.
        request.headers["User-Agent"] = f"evalstudio/{__version__}"

    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS)),
        limits=httpx2.Limits(
            max_connections=most_connections, max_keepalive_connections=most_connections, keepalive_expiry=30
        ),
        headers={"Accept-Encoding": "identity"},
        event_hooks={"request": [introduce], "response": [bound]},
        follow_redirects=False,
        # A proxy for the world outside cannot reach a server on this machine.
        trust_env=not is_local(urlsplit(base_url).hostname or ""),
    )
