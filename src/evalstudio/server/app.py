"""The app: all routes under ``/api``, the UI beside them, and the layers around both."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware import Middleware

from ..version import __version__
from . import errors
from .middleware import BoundedBody, Compression, ResponseHeaders
from .policy import ServerPolicy
from .readiness import LoopWatch
from .routes import (
    comparing,
    conversations,
    definitions,
    evaluations,
    events,
    home,
    monitors,
    reviews,
    runs,
    scoring,
    statistics,
    system,
)
from .routes.otlp import OtlpIntake
from .security import AccessControl, Guard
from .sessions import EndedSessions
from .static import Site

if TYPE_CHECKING:
    from .requests import Studio

# The busiest come first: routes are tried in order.
_ROUTERS = (
    runs.router,
    runs.executions_router,
    system.router,
    system.types_router,
    definitions.router,
    evaluations.router,
    evaluations.feedback_router,
    statistics.router,
    home.router,
    comparing.router,
    reviews.router,
    scoring.router,
    events.router,
    conversations.router,
    monitors.router,
)
_ABOUT = """Evaluates AI agents: live conversations and recorded responses.

Errors are `{"error": {"code", "message", "details"}}` everywhere. Lists are pages: pass `cursor` on to read
on. Edits take `If-Match` with the `ETag` that was read; creates take an `Idempotency-Key`.
"""


def create_app(
    studio: Studio | None = None, policy: ServerPolicy | None = None, *, web: bool = True
) -> FastAPI:
    """The app for an open project. Without one it can only describe itself."""
    settled = policy or (studio.policy if studio else ServerPolicy())
    ended = EndedSessions(studio.workspace.store) if studio else None
    access = AccessControl(settled.token, ended)
    app = FastAPI(
        title="EvalStudio",
        version=__version__,
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        redirect_slashes=False,
        lifespan=_lifespan,
        # What is told by OpenTelemetry is ours to tell; FastAPI would look for it at every request.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        middleware=[
            Middleware(ResponseHeaders),
            Middleware(Guard, policy=settled, access=access),
            Middleware(Compression, minimum_size=2000, compresslevel=1),
            Middleware(BoundedBody, most=settled.largest_body),
        ],
    )
    app.state.studio = studio
    app.state.access = access
    app.state.loop_watch = LoopWatch()
    errors.install(app)
    for router in _ROUTERS:
        app.router.routes.extend(router.routes)
    intake = OtlpIntake(studio.receiver if studio else None)
    for path, answer in (("traces", intake.traces), ("logs", intake.logs), ("metrics", intake.metrics)):
        app.add_route(f"/v1/{path}", answer, methods=["POST"], include_in_schema=False)
    if web:
        app.add_route("/{path:path}", Site().answer, methods=["GET", "HEAD"], include_in_schema=False)
    app.openapi = lambda: openapi_of(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncGenerator[None]:
    studio: Studio | None = app.state.studio
    if studio is not None:
        studio.processing.start()
        if studio.intake is not None:
            studio.intake.start()
        studio.alarm_delivery.start()
    watching = asyncio.create_task(app.state.loop_watch.run())
    try:
        yield
    finally:
        watching.cancel()
        if studio is not None:
            await studio.scorings.stop()
            await studio.background.stop()
            await studio.hub.close()
            if studio.intake is not None:
                await studio.intake.stop()
            await studio.alarm_delivery.stop()
            await studio.processing.stop()


def openapi_of(app: FastAPI) -> dict[str, Any]:
    """The API's description of itself."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schema["components"]["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "Needed where a token is set"}
        }
        schema["security"] = [{"token": []}, {}]
        app.openapi_schema = schema
    return app.openapi_schema


def openapi_text() -> str:
    return json.dumps(create_app().openapi(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"
