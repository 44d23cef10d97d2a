"""``/api/monitors/{id}/…``: the rate of a monitor over time, its alarms, and beginning its tests anew.

Monitors themselves are definitions like the others: ``definitions.py``.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from ...execution.monitor_status import Bucket, read_series
from ...project.alarms import Alarm
from ...reporting.monitor_series import MonitorSeries
from ..api_router import ApiRouter
from ..errors import refusals
from ..middleware import JsonRoute
from ..requests import PagingDep, StudioDep
from ..shapes.base import Identity, PageOf

router = ApiRouter(tags=["monitors"], route_class=JsonRoute)

MonitorId = Annotated[Identity, Path(alias="id")]


class AlarmPage(PageOf[Alarm]):
    """Alarms, newest first."""


@router.get("/monitors/{id}/series", operation_id="getMonitorSeries", responses=refusals(404))
async def series(
    studio: StudioDep,
    monitor_id: MonitorId,
    days: Annotated[int, Query(ge=1, le=366, description="How far back")] = 30,
    bucket: Annotated[Bucket, Query(description="How long a point lasts")] = "day",
) -> MonitorSeries:
    """How a monitor stands, and its rate over time with control limits."""
    monitor = await studio.store.get("monitor", monitor_id)
    return await read_series(studio.store, monitor, days=days, bucket=bucket)


@router.get("/monitors/{id}/alarms", operation_id="listAlarms", responses=refusals(404))
async def alarms(studio: StudioDep, monitor_id: MonitorId, paging: PagingDep) -> AlarmPage:
    """The alarms of a monitor, with the runs they are about."""
    await studio.store.get("monitor", monitor_id)
    page = await studio.store.alarms(monitor_id, **paging)
    return AlarmPage.model_construct(items=page.items, cursor=page.cursor)


@router.post("/alarms/{id}/acknowledge", operation_id="acknowledgeAlarm", responses=refusals(404))
async def acknowledge(studio: StudioDep, alarm_id: MonitorId) -> Alarm:
    """Note that somebody has seen an alarm."""
    return await studio.store.acknowledge_alarm(alarm_id)


@router.post(
    "/monitors/{id}/restart", operation_id="restartMonitor", status_code=204, responses=refusals(404)
)
async def restart(studio: StudioDep, monitor_id: MonitorId) -> None:
    """Begin a monitor's tests anew, learning included, and end its alarms; what it reviewed stays."""
    await studio.store.get("monitor", monitor_id)
    await studio.store.restart_monitor(monitor_id)
