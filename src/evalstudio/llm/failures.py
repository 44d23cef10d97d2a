"""From what a provider's library raises to a failure a person understands.

Libraries wrap each other's errors, so the status, the headers and the cause are looked for along the chain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

import httpx2
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelQuotaExceededError,
    UnexpectedModelBehavior,
)

from ..messages import json_text
from .errors import redact
from .providers import Target
from .retrying import Failure, retry_after
from .transport import ReplyRefused

_LONGEST_DETAIL = 300
_LONGEST_RAW = 20_000
# Google says in the body how long to wait.
_DELAY = re.compile(r'"retryDelay":\s*"(\d{1,6}(?:\.\d+)?)s"')


def explain(error: Exception, target: Target, secret: str | None, seconds: float) -> Failure:
    """Why the call failed, whether to try again, and what the person can do."""
    failure = _of_status(error, target) or _of_connection(error, target, seconds)
    if failure is None and isinstance(error, ModelAPIError | UnexpectedModelBehavior):
        failure = Failure(
            f"{target.place} sent a reply outside the protocol: {_one_line(str(error))}. "
            f"Check {target.setting('baseUrl')}"
        )
    if failure is None:
        failure = Failure(
            f"{target.place} could not be asked: {type(error).__name__}: {_one_line(str(error))}"
        )
    return Failure(
        redact(failure.message, secret),
        failure.status,
        failure.again,
        failure.throttled,
        failure.retry_after,
        redact(failure.raw, secret) if failure.raw else None,
    )


def _of_status(error: Exception, target: Target) -> Failure | None:
    source = next((e for e in _chain(error) if isinstance(_attribute(e, "status_code"), int)), None)
    if source is None:
        return None
    status = cast(int, _attribute(source, "status_code"))
    body = _attribute(source, "body")
    headers = _attribute(source, "headers") or _attribute(_attribute(source, "response"), "headers")
    asked = retry_after(cast(Mapping[str, str], headers)) if isinstance(headers, Mapping) else None
    if asked is None and (delay := _DELAY.search(_raw(body))):
        asked = float(delay[1])
    # No money left comes as 429 too, but does not pass with time.
    out_of_credit = (
        isinstance(error, ModelQuotaExceededError) or status == 402 or _code(source) == "insufficient_quota"
    )
    again = (status == 429 and not out_of_credit) or status >= 500
    refused_key = isinstance(error, ModelAuthenticationError) or status in (401, 403)
    detail = _detail(body)
    message = _words(status, target, out_of_credit, refused_key) + (f": {detail}" if detail else "")
    return Failure(
        message, status, again, status == 429 and again, asked if again else None, _raw(body) or None
    )


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
            return Failure(
                f"{target.place} did not answer within {seconds:g} s (llmSettings.timeoutSeconds)", again=True
            )
        if isinstance(cause, httpx2.TransportError | OSError):
            reason = _one_line(str(cause) or type(cause).__name__)
            return Failure(
                f"{target.place} could not be reached: {reason}. Check {target.setting('baseUrl')}",
                again=True,
            )
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__


def _attribute(source: object, name: str) -> object:
    return cast(object, getattr(source, name, None))


def _code(source: object) -> object:
    return _attribute(source, "code") or _attribute(source, "provider_error_code")


def _raw(body: object) -> str:
    if body is None:
        return ""
    return (body if isinstance(body, str) else json_text(body))[:_LONGEST_RAW]


def _detail(body: object) -> str:
    """The provider's own words, found in the shapes error bodies have."""
    value = body
    for key in ("error", "message", "detail"):
        if isinstance(value, Mapping):
            fields = cast(Mapping[str, object], value)
            value = fields.get(key, fields)
    return _one_line(_raw(value))


def _one_line(text: str) -> str:
    line = " ".join(text[: _LONGEST_DETAIL * 4].split())
    return line if len(line) <= _LONGEST_DETAIL else line[: _LONGEST_DETAIL - 1] + "…"
