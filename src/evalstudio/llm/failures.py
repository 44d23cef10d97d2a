"""What goes wrong with a provider, in words a person understands, whichever protocol it speaks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from ..base.json_text import json_text
from ..base.paths import fields_of
from ..base.redaction import Redaction
from ..base.retry import retry_after
from ..base.text import excerpt
from .limits import Failure
from .settings import Target

_LONGEST_DETAIL = 300
_LONGEST_RAW = 20_000
# Google says in the body how long to wait.
_DELAY = re.compile(r'"retryDelay":\s*"(\d{1,6}(?:\.\d+)?)s"')


class ReplyRefused(Exception):
    """A reply that is not read to its end; the message goes after the provider's name."""


def too_large(most: int) -> ReplyRefused:
    return ReplyRefused(f"sent a reply of more than {most:,} bytes (llmSettings.maxResponseBytes)")


def compressed() -> ReplyRefused:
    """A small compressed reply may unfold into a huge one, so none is asked for and none is read."""
    return ReplyRefused("sent a compressed reply, which was not asked for")


def redirected(status: int) -> ReplyRefused:
    return ReplyRefused(f"answered with a redirect ({status}); give its final address")


def of_status(
    status: int,
    body: object,
    headers: Mapping[str, str] | None,
    target: Target,
    *,
    no_quota: bool = False,
    refused_key: bool = False,
) -> Failure:
    """An answer with a status other than success."""
    wait = retry_after(headers)
    if wait is None and (delay := _DELAY.search(_raw(body))):
        wait = float(delay[1])
    # No money left comes as 429 too, but does not pass with time.
    out_of_credit = no_quota or status == 402 or _code_in(body) == "insufficient_quota"
    again = (status == 429 and not out_of_credit) or status >= 500
    detail = _detail(body)
    words = _words(status, target, out_of_credit, refused_key or status in (401, 403))
    message = words + (f": {detail}" if detail else "")
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


def not_in_time(target: Target, seconds: float) -> Failure:
    late = f"{target.place} did not answer within {seconds:g} s (llmSettings.timeoutSeconds)"
    return Failure(late, again=True)


def not_reached(target: Target, reason: str, *, again: bool = True) -> Failure:
    hint = f"Check {target.setting('baseUrl')}"
    return Failure(f"{target.place} could not be reached: {_excerpt(reason)}. {hint}", again=again)


def outside_protocol(target: Target, problem: str) -> Failure:
    return Failure(
        f"{target.place} sent a reply outside the protocol: {_excerpt(problem)}. "
        f"Check {target.setting('baseUrl')}"
    )


def not_asked(target: Target, error: Exception) -> Failure:
    return Failure(f"{target.place} could not be asked: {type(error).__name__}: {_excerpt(str(error))}")


def redacted(failure: Failure, redact: Redaction) -> Failure:
    raw = redact(failure.raw) if failure.raw else None
    return replace(failure, message=redact(failure.message), raw=raw)


def _raw(body: object) -> str:
    if body is None:
        return ""
    return (body if isinstance(body, str) else json_text(body))[:_LONGEST_RAW]


def error_in(body: object) -> object:
    """What a body says of an error: its ``error``, alone or first in a list, or the body itself."""
    items = cast(list[object], body) if isinstance(body, list) else [body]
    first = items[0] if items else None
    return fields_of(first).get("error", first)


def _code_in(body: object) -> object:
    return fields_of(error_in(body)).get("code")


def _detail(body: object) -> str:
    """The provider's own words, in whichever of the usual places they are."""
    value = error_in(body)
    for key in ("message", "detail"):
        if isinstance(value, Mapping):
            fields = cast(Mapping[str, object], value)
            value = fields.get(key, fields)
    return _excerpt(_raw(value))


def _excerpt(text: str) -> str:
    return excerpt(text, _LONGEST_DETAIL)
