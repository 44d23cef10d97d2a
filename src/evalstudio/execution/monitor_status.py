"""How a monitor stands: what its page, the API and the command line show."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from ..base.times import milliseconds_of, now
from ..project.entities import StoredMonitor
from ..reporting.monitor_series import MonitorSeries, monitor_series

if TYPE_CHECKING:
    from ..storage.store import SqlStore

Bucket = Literal["hour", "day"]
BUCKET_MS: dict[Bucket, int] = {"hour": 3_600_000, "day": 86_400_000}


async def read_series(store: SqlStore, monitor: StoredMonitor, *, days: int, bucket: Bucket) -> MonitorSeries:
    """The rate of a monitor over the last days, in hours or UTC days."""
    moment = now()
    since = moment - timedelta(days=days)
    until_ms = milliseconds_of(moment) + BUCKET_MS[bucket]
    counts = await store.monitored_counts(monitor.id, milliseconds_of(since), until_ms, BUCKET_MS[bucket])
    return monitor_series(
        monitor,
        await store.monitor_test(monitor.id),
        counts,
        since=since,
        judge_calls=await store.judge_calls(monitor.id, moment.date().isoformat()),
        alarms=[one for one in await store.open_alarms() if one.monitor_id == monitor.id],
    )
