"""Production conversations as monitors see them: which are reviewed, and what they come to.

Whoever assembles conversations hands each one over when it is complete, and again when it has grown
(``revision``). Handing over the same one twice, or from two servers at once, changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any
from weakref import WeakValueDictionary

from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput
from ..base.text import percent
from ..base.times import milliseconds_of, now
from ..conversation.definitions import Scenario
from ..llm.usage import counting_usage
from ..project.alarms import NOT_JUDGED, Alarm
from ..project.documents import check_stored
from ..project.entities import Execution, StoredMonitor, derived_id, id_floor
from ..project.monitors import Monitor
from ..recordings.conversation import RecordedConversation
from ..reporting.monitoring import BandChange, MonitorTest
from ..storage.contract import FinishedRun, NewRun, Snapshot, every_item
from ..storage.monitoring import AlarmChange, MonitorReview, MonitorStep, conversation_key
from .reviewing import HiddenFromView, ReviewedScenario, review_one
from .run_worker import system_error
from .workspace import Workspace

log = logging.getLogger("evalstudio")

# What the source says of its time is believed within these bounds; clocks may be wrong by years.
_LONGEST_AGO = timedelta(days=7)
_MONITORS_SECONDS = 1.0
_JUDGING = ("scenario_ids", "success_criteria", "failure_criteria", "evaluators", "criteria", "band")
# One conversation at a time within a process: its revisions are kept one after the other.
_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


class MonitorReviews:
    """Hands conversations to the monitors; which there are is looked up once a second at most."""

    def __init__(self) -> None:
        self._monitors: list[StoredMonitor] = []
        self._read_at = float("-inf")

    async def __call__(
        self,
        workspace: Workspace,
        conversation: RecordedConversation,
        attributes: Mapping[str, Any],
        *,
        revision: int,
    ) -> None:
        if monotonic() - self._read_at > _MONITORS_SECONDS:
            self._monitors, self._read_at = await enabled_monitors(workspace), monotonic()
        await on_conversation(workspace, conversation, attributes, revision=revision, monitors=self._monitors)


async def on_conversation(
    workspace: Workspace,
    conversation: RecordedConversation,
    attributes: Mapping[str, Any],
    *,
    revision: int,
    monitors: Sequence[StoredMonitor] | None = None,
) -> None:
    """Review a complete conversation for every monitor that it concerns.

    A monitor that cannot review it counts it as an error. What the database refuses is raised, after all
    monitors had their turn: hand it over again then.
    """
    listed = await enabled_monitors(workspace) if monitors is None else monitors
    concerned = [one for one in listed if one.covers(attributes) and one.samples(conversation.id)]
    if not concerned:
        return
    key = conversation_key(conversation.id)
    lock = _locks.setdefault(key, asyncio.Lock())
    failures: list[Exception] = []
    async with lock:
        for monitor in concerned:
            try:
                await _MonitorReviewer(workspace, monitor, key, revision).review(conversation)
            except Exception as error:
                failures.append(error)
    if failures:
        raise failures[0]


async def enabled_monitors(workspace: Workspace) -> list[StoredMonitor]:
    items = every_item(lambda cursor: workspace.store.list_of("monitor", cursor=cursor, limit=500))
    monitors = [one async for one in items if isinstance(one, StoredMonitor)]
    return [one for one in monitors if _usable(one)]


def _usable(monitor: StoredMonitor) -> bool:
    try:
        check_stored(monitor)
    except InvalidInput as error:
        log.warning("Nothing is reviewed for a monitor that cannot be used as it is: %s", error)
        return False
    return monitor.enabled


@dataclass(slots=True)
class _MonitorReviewer:
    workspace: Workspace
    monitor: StoredMonitor
    conversation_key: str
    revision: int

    async def review(self, conversation: RecordedConversation) -> None:
        store, monitor = self.workspace.store, self.monitor
        known = await store.reviewed_revision(monitor.id, self.conversation_key)
        if known is not None and known >= self.revision:
            return
        moment = now()
        scenario = await self._scenario()
        reviewed = ReviewedScenario.of(self.workspace, scenario)
        finished = await self._judged(reviewed, conversation, moment)
        changes: list[AlarmChange] = []
        basis, outcome = (
            _basis(monitor, reviewed),
            finished.ending.verdict.outcome if finished else NOT_JUDGED,
        )

        def advance(kept: Mapping[str, Any] | None) -> MonitorStep:
            step = _advanced(monitor, kept, basis, outcome, milliseconds_of(moment))
            changes[:] = step.changes
            return step

        reason = "the calls of judges for this day are used up"
        review = MonitorReview(
            monitor_id=monitor.id,
            conversation_key=self.conversation_key,
            conversation_id=conversation.id,
            revision=self.revision,
            outcome=outcome,
            reason=finished.ending.verdict.reason if finished else reason,
            at_ms=milliseconds_of(_time_of(conversation, moment)),
            execution=_execution(monitor, moment) if finished else None,
            finished=finished,
        )
        if await store.keep_review(review, advance):
            _log(monitor, changes)

    async def _scenario(self) -> Scenario:
        if self.monitor.scenario_ids:
            return await self.workspace.store.get("scenario", self.monitor.scenario_ids[0])
        return self.monitor.own_scenario()

    async def _judged(
        self, scenario: ReviewedScenario, conversation: RecordedConversation, moment: datetime
    ) -> FinishedRun | None:
        """The conversation as a finished run; none where the judges of this day have been called enough."""
        run_id = derived_id(id_floor(moment), f"{self.monitor.id} {self.conversation_key} {self.revision}")
        try:
            calls = _most_calls(scenario, conversation)
            day, most = moment.date().isoformat(), self.monitor.judge_calls_per_day
            if not calls or most is None:
                return await review_one(self.workspace, scenario, conversation, run_id=run_id)
            store = self.workspace.store
            if not await store.reserve_judge_calls(self.monitor.id, day, calls, most):
                return None
            with counting_usage() as usage:
                finished = await review_one(self.workspace, scenario, conversation, run_id=run_id)
            made = usage["evaluation"].calls if "evaluation" in usage else 0
            await store.settle_judge_calls(self.monitor.id, day, made - calls)
            return finished
        except HiddenFromView as error:
            # What may hold a secret is not stored as a run either.
            unseen = replace(conversation, turns=[], seeds=[])
            return _not_reviewable(scenario, unseen, run_id, str(error))
        except InvalidInput as error:
            return _not_reviewable(scenario, conversation, run_id, str(error))


def _not_reviewable(
    scenario: ReviewedScenario, conversation: RecordedConversation, run_id: str, message: str
) -> FinishedRun:
    run = NewRun(
        scenario=scenario.snapshot,
        connector=Snapshot.of({"name": conversation.agent or "recorded", "type": "recorded"}),
        scenario_id=scenario.id,
        scenario_name=scenario.scenario.name,
        connector_name=conversation.agent,
        case={"name": conversation.task_id or conversation.id},
        id=run_id,
    )
    turns = [turn.model_copy(update={"results": []}) for turn in conversation.turns]
    if turns and conversation.seeds:
        before = {"number": 0, "user_message": None, "messages": conversation.seeds}
        turns.insert(0, turns[0].model_copy(update=before))
    return FinishedRun(run, turns, system_error(message))


def _most_calls(scenario: ReviewedScenario, conversation: RecordedConversation) -> int:
    """How many calls of judges a review takes at most, an answer that must be asked for again not counted."""
    entries = scenario.prepared_for(conversation).entries
    judges = [entry for entry in entries if entry.definition.cost == "llm"]
    turns = max(1, len(conversation.turns))
    return sum(1 if entry.gate == "finally" else turns + 1 for entry in judges)


def _time_of(conversation: RecordedConversation, moment: datetime) -> datetime:
    """When a conversation took place, as far as its clock can be believed."""
    started = conversation.started
    if started is None:
        return moment
    started = started.replace(tzinfo=UTC) if started.tzinfo is None else started
    return started if moment - _LONGEST_AGO <= started <= moment else moment


def _execution(monitor: StoredMonitor, moment: datetime) -> Execution:
    """What a monitor reviews in one UTC day is one execution."""
    day = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    labels = {"monitor": monitor.name, "day": day.date().isoformat()}
    return Execution(
        id=derived_id(id_floor(day), f"{monitor.id} {labels['day']}"),
        eval_name=monitor.name,
        trigger="monitor",
        labels=labels,
        source="production",
    )


def _basis(monitor: Monitor, scenario: ReviewedScenario) -> str:
    """What a monitor's tests rest on: what judges, and the band."""
    fields = monitor.model_dump(mode="json", by_alias=True, include=set(_JUDGING))
    return Snapshot.of({**fields, "scenario": scenario.snapshot.hash}).hash


def _advanced(
    monitor: StoredMonitor, kept: Mapping[str, Any] | None, basis: str, outcome: str, now_ms: int
) -> MonitorStep:
    """A monitor's tests after one more conversation, and the alarms that come of it."""
    test = MonitorTest.read(kept, basis)
    restarted = kept is not None and kept.get("basis") != basis
    before = test.position
    changes = test.add_outcome(monitor.band, monitor.alarm, outcome, now_ms)
    alarms = [
        AlarmChange(_alarm(monitor, one), one.change, one.start, monitor.alarm.webhook is not None)
        for one in changes
    ]
    position = test.position if test.position > before else None
    return MonitorStep(test.to_json(), position, alarms, restarted)


def _alarm(monitor: StoredMonitor, change: BandChange) -> Alarm:
    return Alarm(
        monitor_id=monitor.id,
        monitor_name=monitor.name,
        kind=change.kind,
        text=_text(monitor.name, change),
        passed=change.passed,
        scored=change.scored,
        edge=change.edge,
    )


def _text(name: str, change: BandChange) -> str:
    if change.kind == "unasserted":
        without = f"the last {change.scored:,} conversations came to no verdict"
        return f'Monitor "{name}": {without}: nothing was asserted of them, so nothing is measured.'
    if change.kind == "errors":
        share = f"{change.scored - change.passed:,} of the last {change.scored:,} conversations errored"
        return f'Monitor "{name}": {share}; at most {percent(1 - change.edge, 1)} are expected.'
    share = (
        f"{change.passed:,} of the last {change.scored:,} conversations passed ({percent(change.rate, 1)})"
    )
    return f'Monitor "{name}": {share}; at least {percent(change.edge, 1)} is expected.'


def _log(monitor: StoredMonitor, changes: Sequence[AlarmChange]) -> None:
    for one in changes if monitor.alarm.log else ():
        if one.change == "left":
            log.warning("ALARM %s", one.alarm.text)
        else:
            log.warning('Monitor "%s" is back in its band (%s)', monitor.name, one.alarm.kind)
