"""Errors of the API: one shape for all of them, the right status, nothing secret in the words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import isclass
from typing import Any

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

CODES = {
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

    code: str = Field(json_schema_extra={"enum": [*CODES.values()]})
    message: str = Field(examples=['There is no run "01k".'])
    details: list[Problem] = Field(default_factory=list[Problem])


class ErrorAnswer(BaseModel):
    """Every error has this shape."""

    error: ErrorBody


class ApiError(Exception):
    """An error with its status, raised by routes."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers or {}


def error_body(status: int, message: str, details: Sequence[Problem] = ()) -> dict[str, Any]:
    code = CODES.get(status, "bad_request" if status < 500 else "internal")
    return ErrorAnswer(error=ErrorBody(code=code, message=message, details=[*details])).model_dump()


def error_response(
    status: int, message: str, details: Sequence[Problem] = (), headers: Mapping[str, str] | None = None
) -> JSONResponse:
    return JSONResponse(error_body(status, message, details), status, dict(headers or {}))


EVERYWHERE = (400, 401, 403, 422, 429, 431, 503)


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors an operation may answer with besides those of all operations, for its documentation."""
    refused: dict[int | str, dict[str, Any]] = {}
    for status in statuses:
        content = {"application/json": {"example": error_body(status, MEANINGS[status])}}
        refused[status] = {"model": ErrorAnswer, "description": MEANINGS[status], "content": content}
    return refused


_STATUS: dict[type[Exception], int] = {
    NotFound: 404,
    NameTaken: 409,
    InUse: 409,
    VersionConflict: 412,
    UnknownReference: 422,
    KeyReused: 422,
    InvalidCursor: 400,
}


def install(app: FastAPI) -> None:
    """Answer every error in the one shape."""
    handled = (StorageError, InvalidCursor, ApiError, InvalidInput, RequestValidationError, HTTPException)
    for kind in handled:
        app.add_exception_handler(kind, _answer)


async def _answer(request: Request, error: Exception) -> JSONResponse:
    match error:
        case ApiError():
            return error_response(error.status, str(error), headers=error.headers)
        case InvalidInput():
            return _invalid(error.problems)
        case RequestValidationError():
            return _invalid_request(request, error)
        case HTTPException():
            texts = {404: "There is nothing at this address.", 405: "This address does not know the method."}
            message = texts.get(error.status_code, str(error.detail))
            return error_response(error.status_code, message, headers=error.headers)
        case _:
            status = next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 503)
            return error_response(status, str(error), headers={"Retry-After": "2"} if status == 503 else None)


def _invalid_request(request: Request, error: RequestValidationError) -> JSONResponse:
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
    details: list[Problem] = []
    for one in wrong:
        message = ": ".join(part for part in (one.place, one.subject, one.message) if part)
        details.append(Problem(path=path_text(one.path), message=message, hint=one.hint))
    return error_response(422, f"{wrong[0]}{more}", details)
