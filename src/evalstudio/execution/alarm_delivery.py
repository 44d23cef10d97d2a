"""Posting alarms to webhooks, beside everything else: signed, tried again for a day, then given up.

Any number of servers may share the work. What is due is taken under a lease, so that a server that dies while
posting leaves it to the others; the receiver may then get an alarm twice, under the same id.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
from datetime import timedelta

from aiohttp import ClientError, ClientTimeout

from ..base.concurrency import set_within
from ..base.json_text import json_text
from ..base.redaction import Redaction
from ..base.references import resolve
from ..base.retry import backoff
from ..base.times import now
from ..project.alarms import Alarm
from ..project.monitors import Monitor
from ..storage.errors import NotFound, StorageError
from .monitoring import enabled_monitors
from .workspace import Workspace

log = logging.getLogger("evalstudio")

_POST_SECONDS = 10.0
_LEASE_MS = 60_000
_AT_ONCE = 20
_FIRST_RETRY, _LONGEST_RETRY = 10.0, 3600.0
_GIVEN_UP_AFTER = timedelta(hours=24)
_LOOK_SECONDS = 2.0
_PRUNE_EVERY = timedelta(hours=1)


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """What proves that an alarm was posted by who knows the secret, at this time."""
    return "sha256=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


async def post_alarm(workspace: Workspace, monitor: Monitor, alarm: Alarm) -> str | None:
    """Post an alarm to its monitor's webhook; what went wrong, if anything did."""
    webhook = monitor.alarm.webhook
    if webhook is None:
        return "the monitor has no webhook any more"
    url = secret = ""
    try:
        url = resolve(webhook.url, "alarm.webhook.url")
        secret = resolve(workspace.box.open_text(webhook.secret or ""), "alarm.webhook.secret")
        return await _post(workspace, url, secret, alarm)
    except (ValueError, OSError, ClientError, TimeoutError) as error:
        # The address may be a secret itself: whoever knows it may post there.
        told = str(error) or type(error).__name__
        return Redaction.of(frozenset(filter(None, (url, secret))))(told)[:500]


async def _post(workspace: Workspace, url: str, secret: str, alarm: Alarm) -> str | None:
    sent = alarm.model_dump(mode="json", by_alias=True, exclude={"delivery", "tries", "delivery_error"})
    body = json_text({"type": "monitor.alarm", "alarm": sent}).encode()
    timestamp = str(int(now().timestamp()))
    headers = {
        "Content-Type": "application/json",
        "X-EvalStudio-Alarm": alarm.id,
        "X-EvalStudio-Timestamp": timestamp,
    }
    if secret:
        headers["X-EvalStudio-Signature"] = signature(secret, timestamp, body)
    timeout = ClientTimeout(total=_POST_SECONDS)
    async with workspace.http.client().post(url, data=body, headers=headers, timeout=timeout) as answer:
        return None if 200 <= answer.status < 300 else f"the webhook answered {answer.status}"


async def deliver_due(workspace: Workspace) -> int:
    """Try every alarm whose time has come once; says how many there were."""
    alarms = await workspace.store.claim_alarms(_LEASE_MS, _AT_ONCE)
    await asyncio.gather(*(_deliver(workspace, alarm) for alarm in alarms))
    return len(alarms)


async def _deliver(workspace: Workspace, alarm: Alarm) -> None:
    try:
        monitor = await workspace.store.get("monitor", alarm.monitor_id)
    except NotFound:
        return
    error = await post_alarm(workspace, monitor, alarm)
    gives_up = monitor.alarm.webhook is None or now() - alarm.created_at > _GIVEN_UP_AFTER
    again = None if gives_up else int(backoff(alarm.tries, _FIRST_RETRY, _LONGEST_RETRY) * 1000)
    await workspace.store.note_delivery(alarm.id, error, again)
    if error is not None and gives_up:
        log.error('The webhook of monitor "%s" was not told of alarm %s: %s', monitor.name, alarm.id, error)


async def prune_monitors(workspace: Workspace) -> int:
    """Delete what monitors reviewed longer ago than they keep it; says how many reviews."""
    monitors = await enabled_monitors(workspace)
    kept = [(one.id, timedelta(days=one.retention_days)) for one in monitors]
    return sum([await workspace.store.prune_monitor(*one) for one in kept])


class AlarmDeliveryTask:
    """Delivers alarms and clears away old reviews, until told to stop."""

    def __init__(self, workspace: Workspace) -> None:
        self.problem: str | None = None
        self._workspace = workspace
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = self._task or asyncio.create_task(self._work())

    async def stop(self) -> None:
        self._stop.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        pruned = None
        while not self._stop.is_set():
            try:
                await deliver_due(self._workspace)
                if pruned is None or abs(now() - pruned) > _PRUNE_EVERY:
                    pruned = now()
                    await prune_monitors(self._workspace)
                self.problem = None
            except StorageError as error:
                if self.problem is None:
                    log.error("Alarms wait for the database: %s", error)
                self.problem = str(error)
            except Exception as error:
                log.exception("Delivering alarms failed and will be tried again")
                self.problem = f"{type(error).__name__}: {error}"
            await set_within(self._stop, _LOOK_SECONDS)
