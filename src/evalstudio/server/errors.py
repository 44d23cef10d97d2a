"""Errors of the API: one shape for all of them, the right status, nothing secret in the words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from ..base.files import ConfigError
from ..base.schemas import path_text
from ..configs import InvalidConfig
from ..conversation.preparation import InvalidScenario
from ..project.secrets import SecretError
from ..project.validation import InvalidDefinition
from ..storage.errors import (
    InUse,
    InvalidCursor,
    KeyReused,
    NameTaken,
    NotFound,
    StorageError,
    UnknownReference,
    VersionConflict,
)

ErrorCode = Literal[
    "bad_request",
    "unauthorized",
    "forbidden",
    "not_found",
    "method_not_allowed",
    "conflict",
    "changed_meanwhile",
    "too_large",
    "unsupported_media_type",
    "invalid",
    "too_many_requests",
    "headers_too_large",
    "internal",
    "unavailable",
]

CODES: dict[int, ErrorCode] = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    412: "changed_meanwhile",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    429: "too_many_requests",
    431: "headers_too_large",
    500: "internal",
    503: "unavailable",
}
MEANINGS = {
    400: "The request cannot be read: its body is not JSON, or its cursor is not one a list handed out",
    401: "The token is missing or wrong",
    403: "The request comes from another site, or names a host that is not allowed",
    404: "There is no such thing, or no longer",
    405: "This address does not know the method",
    409: "It does not fit what is there: a name is taken, something is in use, a run is in another state",
    412: "Somebody else changed it first: the If-Match header names another version",
    413: "The body is larger than allowed",
    415: "The body is not application/json",
    422: "The request can be read but not accepted; details name the fields",
    429: "Too many wrong tokens; wait as Retry-After says",
    431: "The headers are larger than allowed",
    503: "The database cannot be reached right now",
}


class Problem(BaseModel):
    """One thing that is wrong, and where."""

    path: str = Field(description="The place in the request", examples=["evaluators[0].config.pattern"])
    message: str = Field(examples=["is missing"])


class ErrorBody(BaseModel):
    """What went wrong."""

    code: ErrorCode
    message: str = Field(examples=['There is no run "01k".'])
    details: list[Problem] = Field(default_factory=list[Problem])


class ErrorAnswer(BaseModel):
    """Every error has this shape."""

    error: ErrorBody


class ApiError(Exception):
    """An error with its status, raised by routes."""

    def __init__(self, status: int, message: str, details: list[Problem] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.details = details or []


def error_body(status: int, message: str, details: list[Problem] | None = None) -> dict[str, Any]:
    code = CODES.get(status, "bad_request" if status < 500 else "internal")
    found = ErrorBody(code=code, message=message, details=details or [])
    return ErrorAnswer(error=found).model_dump()


def error_response(
    status: int,
    message: str,
    details: list[Problem] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    return JSONResponse(error_body(status, message, details), status, dict(headers or {}))


_ALWAYS = (400, 401, 403, 422, 429, 431, 503)


def refusals(*more: int) -> dict[int | str, dict[str, Any]]:
    """The errors an operation may answer with, for its documentation."""
    return {status: _refusal(status) for status in sorted({*_ALWAYS, *more})}


def _refusal(status: int) -> dict[str, Any]:
    example = error_body(status, MEANINGS[status])
    return {
        "model": ErrorAnswer,
        "description": MEANINGS[status],
        "content": {"application/json": {"example": example}},
    }


_STATUS: list[tuple[type[Exception], int]] = [
    (NotFound, 404),
    (NameTaken, 409),
    (InUse, 409),
    (VersionConflict, 412),
    (UnknownReference, 422),
    (KeyReused, 422),
    (InvalidCursor, 400),
    (InvalidDefinition, 422),
    (InvalidScenario, 422),
    (ConfigError, 422),
    (SecretError, 422),
]
_PATH = re.compile(
    r"(?:[a-z]+ \"[^\"]*\": )?((?:[A-Za-z_][\w-]*|\[\d+\])(?:\.[\w-]+|\[\d+\])*): (.+)", re.DOTALL
)


def problems_in(message: str) -> list[Problem]:
    """A message that begins with a path, as a detail of its own."""
    found = _PATH.fullmatch(message)
    return [Problem(path=found[1], message=found[2])] if found else []


def install(app: FastAPI) -> None:
    """Answer every error in the one shape."""
    for kind, status in _STATUS:
        app.add_exception_handler(kind, _with(status))
    app.add_exception_handler(StorageError, _unavailable)
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(InvalidConfig, _invalid_config)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)


def _with(status: int) -> Any:
    async def answer(_: Request, error: Exception) -> JSONResponse:
        message = str(error)
        return error_response(status, message, problems_in(message) if status == 422 else None)

    return answer


async def _unavailable(_: Request, error: Exception) -> JSONResponse:
    return error_response(503, str(error), headers={"Retry-After": "2"})


async def _api_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiError)
    return error_response(error.status, str(error), error.details)


async def _invalid_config(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, InvalidConfig)
    details = [
        Problem(path=f"{error.what}{'.' if path else ''}{path}", message=text)
        for path, text in error.problems
    ]
    return error_response(422, str(error), details)


async def _invalid_request(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(item["type"] == "json_invalid" for item in found):
        return error_response(400, f"The body is not valid JSON: {found[0]['ctx']['error']}")
    # What was sent stays out of the answer: it may be a secret.
    details = [Problem(path=_place(item["loc"]), message=_message(item)) for item in found]
    first = details[0]
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return error_response(
        422, f"{first.path}: {first.message}{more}" if first.path else first.message, details
    )


def _place(loc: tuple[str | int, ...]) -> str:
    return path_text(loc[1:] if loc and loc[0] == "body" else loc)


def _message(item: Mapping[str, Any]) -> str:
    text = str(item["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return "unknown key" if item["type"] == "extra_forbidden" else text


async def _http_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    words = {404: "There is nothing at this address.", 405: "This address does not know the method."}
    message = words.get(error.status_code, str(error.detail))
    return error_response(error.status_code, message, headers=error.headers)
