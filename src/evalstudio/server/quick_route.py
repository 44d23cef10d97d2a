"""Routes that are asked for most: their parameters are read without FastAPI's general resolver.

The resolver looks at every declared parameter several times, which costs more than the answer. Here only
those that were sent are looked at. Whatever does not fit is left to FastAPI, whose errors stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, get_args, get_origin, get_type_hints

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from starlette.types import ASGIApp, Receive, Scope, Send

from ..base.lazy_dataclass import dataclass
from .middleware import JsonRoute
from .requests import JsonAnswer


class _Unfit(Exception):
    """A request that is left to FastAPI."""


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    alias: str
    default: Any
    is_required: bool
    is_list: bool
    validate: Callable[[Any], tuple[Any, list[Any]]]

    @classmethod
    def of(cls, field: Any) -> _Parameter:
        info = field.field_info
        return cls(
            field.name,
            field.alias,
            field.default,
            info.is_required(),
            _takes_several(info.annotation),
            field.validate,
        )

    def value(self, sent: Mapping[str, str]) -> Any:
        text = sent.get(self.alias)
        if text is None and not self.is_required:
            return self.default
        if text is None or self.is_list:
            raise _Unfit
        value, errors = self.validate(text)
        if errors:
            raise _Unfit
        return value


def _takes_several(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(_takes_several(part) for part in get_args(annotation))


class _Call:
    """A function, the parameters it takes from the request, and the calls whose results it takes."""

    def __init__(self, dependant: Dependant) -> None:
        assert dependant.call is not None
        self._function: Callable[..., Coroutine[Any, Any, Any]] = dependant.call
        self._request_name = dependant.request_param_name
        self._in_path = [_Parameter.of(field) for field in dependant.path_params]
        self._in_query = [_Parameter.of(field) for field in dependant.query_params]
        self._calls = [(one.name or "", _Call(one)) for one in dependant.dependencies]

    async def run(self, request: Request) -> Any:
        values = {one.name: one.value(request.path_params) for one in self._in_path}
        if self._in_query:
            # As a plain dict, which says what is missing without raising.
            query = dict(request.query_params.items())
            values.update((one.name, one.value(query)) for one in self._in_query)
        for name, call in self._calls:
            values[name] = await call.run(request)
        if self._request_name is not None:
            values[self._request_name] = request
        return await self._function(**values)


class QuickRoute(JsonRoute):
    """A route that reads the parameters itself where its function answers with ``JsonAnswer``."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        if get_type_hints(self.endpoint).get("return") is JsonAnswer:
            self.app = _quickly(_Call(self.dependant), self.app)


def _quickly(call: _Call, usual: ASGIApp) -> ASGIApp:
    """What runs a function and sends what it answers; errors are the app's own to translate.

    What FastAPI keeps open around a request for dependencies that are closed after it is left out: none of
    these functions has one.
    """

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer: Response = await call.run(Request(scope, receive, send))
        except _Unfit:
            await usual(scope, receive, send)
        else:
            await answer(scope, receive, send)

    return app
