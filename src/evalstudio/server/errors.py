"""Errors of the API: one shape for all of them, the right status, nothing secret in the words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import isclass
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from ..base import problems
from ..base.problems import InvalidInput, path_text, problems_of
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
    message: str = Field(examples=["unknown key"])
    hint: str = Field(default="", description="What to do about it", examples=["did you mean pattern?"])


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
    body = ErrorBody(code=code, message=message, details=details or [])
    return ErrorAnswer(error=body).model_dump()


def error_response(
    status: int, message: str, details: list[Problem] | None = None, headers: Mapping[str, str] | None = None
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
]


def install(app: FastAPI) -> None:
    """Answer every error in the one shape."""
    for kind, status in _STATUS:
        app.add_exception_handler(kind, _with(status))
    app.add_exception_handler(StorageError, _unavailable)
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(InvalidInput, _invalid_input)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)


def _with(status: int) -> Any:
    async def answer(_: Request, error: Exception) -> JSONResponse:
        return error_response(status, str(error))

    return answer


async def _unavailable(_: Request, error: Exception) -> JSONResponse:
    return error_response(503, str(error), headers={"Retry-After": "2"})


async def _api_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiError)
    return error_response(error.status, str(error), error.details)


async def _invalid_input(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, InvalidInput)
    return _invalid(error.problems)


async def _invalid_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    if any(item["type"] == "json_invalid" for item in errors):
        return error_response(400, f"The body is not valid JSON: {errors[0]['ctx']['error']}")
    in_body = [{**item, "loc": item["loc"][1:]} for item in errors if item["loc"][:1] == ("body",)]
    elsewhere = [item for item in errors if item["loc"][:1] != ("body",)]
    # What was sent stays out of the answer: it may be a secret.
    return _invalid(problems_of(elsewhere) + problems_of(in_body, error.body, _body_model(request)))


def _body_model(request: Request) -> type[BaseModel] | None:
    """The model of the body a route takes, which knows its keys."""
    body = getattr(request.scope.get("route"), "body_field", None)
    model: object = body.field_info.annotation if body is not None else None
    return model if isclass(model) and issubclass(model, BaseModel) else None


def _invalid(wrong: Sequence[problems.Problem]) -> JSONResponse:
    """All of the problems; the message tells the first, and how many there are."""
    more = f" (and {len(wrong) - 1:,} more)" if len(wrong) > 1 else ""
    return error_response(422, f"{wrong[0]}{more}", [_detail(one) for one in wrong])


def _detail(problem: problems.Problem) -> Problem:
    words = [part for part in (problem.place, problem.subject, problem.message) if part]
    return Problem(path=path_text(problem.path), message=": ".join(words), hint=problem.hint)


async def _http_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    words = {404: "There is nothing at this address.", 405: "This address does not know the method."}
    message = words.get(error.status_code, str(error.detail))
    return error_response(error.status_code, message, headers=error.headers)
