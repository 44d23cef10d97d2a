"""``/api/events``: what happens, as it happens."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Query, Response

from ..api_router import ApiRouter
from ..events import EventFilter, EventStream
from ..middleware import JsonRoute
from ..requests import StudioDep
from ..shapes.base import Identity
from ..shapes.system import EventJson

router = ApiRouter(tags=["events"], route_class=JsonRoute)

_STREAM: dict[str, Any] = {
    "description": "A stream of server-sent events. Each one's data is an EventJson, its id the event's id.",
    "model": EventJson,
    "content": {
        "text/event-stream": {
            "schema": {"type": "string"},
            "example": 'id: 42\ndata: {"id":42,"kind":"run.finished","executionId":"01k","runId":"01m",'
            '"at":"2026-01-01T00:00:00.000Z","body":{"outcome":"pass"}}\n\n',
        }
    },
}
_LARGEST_ID = 2**53


@router.get("/events", operation_id="streamEvents", response_class=Response, responses={200: _STREAM})
async def stream(
    studio: StudioDep,
    execution_id: Annotated[Identity | None, Query(alias="executionId")] = None,
    run_id: Annotated[Identity | None, Query(alias="runId")] = None,
    after: Annotated[
        int | None, Query(ge=0, le=_LARGEST_ID, description="Begin after this event; else with the next one")
    ] = None,
    last_event_id: Annotated[
        int | None,
        Header(
            alias="Last-Event-ID",
            ge=0,
            le=_LARGEST_ID,
            description="Where a stream broke off; browsers send it by themselves",
        ),
    ] = None,
) -> EventStream:
    """Follow executions and runs. Whoever comes back with Last-Event-ID misses nothing."""
    begin = last_event_id if last_event_id is not None else after
    return EventStream(studio.hub.listen(begin, EventFilter(execution_id, run_id)))
