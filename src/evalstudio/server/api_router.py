"""The router of the API's routes: each stands under ``/api`` and may refuse in the common ways.

A route is made once, with its whole path, and put into each app as it is. Including a router instead would
make every route a second time for every app, and look for the right one through one more layer.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from . import errors

_PREFIX = "/api"


class ApiRouter(APIRouter):
    def __init__(self, *, prefix: str = "", **settings: Any) -> None:
        refused = errors.refusals(*errors.EVERYWHERE)
        super().__init__(prefix=_PREFIX + prefix, responses=refused, **settings)
