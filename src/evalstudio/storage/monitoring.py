"""What monitors keep: which conversation was reviewed how, their tests, and how many judges were called.

A conversation has one row per monitor. A review is kept in one step with its run and the monitor's tests, so
that whoever hands the same conversation over again, or at the same time elsewhere, changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from sqlalchemy import delete, func, select, update

from ..base.lazy_dataclass import dataclass
from ..base.times import moment_of
from ..project.alarms import NOT_JUDGED, Alarm, ConversationReview
from ..project.entities import Execution
from .alarms import end_alarms, raise_alarm
from .contract import FinishedRun
from .queue import execution_row
from .recording import record
from .rows import AnyRow
from .run_controls import DELETE_BATCH, take_out_runs
from .schema import alarms, executions, monitor_budgets, monitor_tests, monitored, monitors
from .transaction import Transaction, now_ms

_MOST_RUNS = 50


@dataclass(frozen=True, slots=True)
class MonitorReview:
    """What a monitor makes of one conversation. One that was not judged has no ``finished`` run."""

    monitor_id: str
    conversation_key: str
    conversation_id: str
    revision: int
    outcome: str
    reason: str
    at_ms: int
    execution: Execution | None = None
    finished: FinishedRun | None = None


@dataclass(frozen=True, slots=True)
class AlarmChange:
    """An alarm to raise, about the conversations after a position, or the end of the alarms of a kind."""

    alarm: Alarm
    change: Literal["left", "back"]
    start: int
    to_deliver: bool = False


class MonitorStep(NamedTuple):
    """A monitor's tests after one more conversation. ``restarted`` ends the alarms of the tests before."""

    body: Mapping[str, Any]
    position: int | None
    changes: Sequence[AlarmChange] = ()
    restarted: bool = False


# Given the tests as they are kept, what one more conversation makes of them. It may be asked more than once.
Advance = Callable[[Mapping[str, Any] | None], MonitorStep]


def conversation_key(conversation_id: str) -> str:
    """By what a monitor knows a conversation, whatever its id is like."""
    return hashlib.sha256(conversation_id.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def reviews_of(unit: Transaction, conversation_ids: Collection[str]) -> dict[str, list[ConversationReview]]:
    """What the monitors made of these conversations."""
    keys = {conversation_key(one): one for one in conversation_ids}
    names: dict[str, str] = {
        row.id: row.name for row in unit.connection.execute(select(monitors.c.id, monitors.c.name))
    }
    # Both parts of the key are given, so that nothing else is looked at.
    query = select(monitored).where(monitored.c.monitor_id.in_(names), monitored.c.conversation_key.in_(keys))
    reviews: dict[str, list[ConversationReview]] = {one: [] for one in conversation_ids}
    for row in unit.connection.execute(query).all():
        review = ConversationReview(
            monitor_id=row.monitor_id,
            monitor_name=names[row.monitor_id],
            outcome=row.outcome,
            reason=row.reason,
            revision=row.revision,
            run_id=row.run_id,
        )
        reviews[keys[row.conversation_key]].append(review)
    return reviews


def reviewed_revision(unit: Transaction, monitor_id: str, conversation_key: str) -> int | None:
    """Which revision of a conversation a monitor has reviewed last."""
    query = select(monitored.c.revision).where(*_of(monitor_id, conversation_key))
    return unit.connection.execute(query).scalar_one_or_none()


def keep_review(unit: Transaction, review: MonitorReview, advance: Advance) -> bool:
    """Keep a review unless one of this revision, or a later one, is kept already."""
    row = _locked_review(unit, review)
    if row.revision >= review.revision:
        return False
    values: dict[str, Any] = {
        "revision": review.revision,
        "outcome": review.outcome,
        "reason": review.reason,
        "at": review.at_ms,
        "reviewed": now_ms(),
        "execution_id": None,
        "run_id": None,
        "position": row.position,
    }
    if row.run_id is not None:
        take_out_runs(unit, [row.run_id])
    if review.finished is not None and review.execution is not None:
        _keep_run(unit, review.execution, review.finished)
        values |= {"execution_id": review.execution.id, "run_id": review.finished.run.id}
    where = _of(review.monitor_id, review.conversation_key)
    # A conversation is in the tests once, unless its first review was an error.
    if row.position is not None and row.outcome != "error":
        unit.connection.execute(update(monitored).where(*where).values(values))
        return True
    step = advance(_locked_test(unit, review.monitor_id))
    values["position"] = row.position if step.position is None else step.position
    unit.connection.execute(update(monitored).where(*where).values(values))
    _keep_step(unit, review.monitor_id, step)
    return True


def _keep_run(unit: Transaction, execution: Execution, finished: FinishedRun) -> None:
    row = execution_row(execution, 0, now_ms())
    unit.connection.execute(unit.insert_into(executions).values(row).on_conflict_do_nothing())
    record(unit, execution, [finished])


def _keep_step(unit: Transaction, monitor_id: str, step: MonitorStep) -> None:
    test = update(monitor_tests).where(monitor_tests.c.monitor_id == monitor_id)
    unit.connection.execute(test.values(body=dict(step.body)))
    if step.restarted:
        end_alarms(unit, monitor_id)
    for one in step.changes:
        if one.change == "back":
            end_alarms(unit, monitor_id, one.alarm.kind)
        else:
            raise_alarm(unit, _with_runs(unit, one), to_deliver=one.to_deliver)


def _with_runs(unit: Transaction, change: AlarmChange) -> Alarm:
    """The alarm with the runs that it is about."""
    alarm = change.alarm
    if alarm.kind == "unasserted":
        return _with_silent_runs(unit, alarm)
    since = (monitored.c.monitor_id == alarm.monitor_id, monitored.c.position > change.start)
    first = unit.connection.execute(select(func.min(monitored.c.at)).where(*since)).scalar()
    bad = monitored.c.outcome == ("fail" if alarm.kind == "rate" else "error")
    query = select(monitored.c.run_id).where(*since, bad, monitored.c.run_id.is_not(None))
    newest = query.order_by(monitored.c.position.desc()).limit(_MOST_RUNS)
    return alarm.model_copy(
        update={
            "since": None if first is None else moment_of(first),
            "run_ids": list(unit.connection.execute(newest).scalars()),
        }
    )


def _with_silent_runs(unit: Transaction, alarm: Alarm) -> Alarm:
    """The alarm with the newest runs of which nothing was asserted; in no rate, they have no position."""
    silent = monitored.c.outcome.in_(("unasserted", NOT_JUDGED))
    query = select(monitored.c.run_id, monitored.c.at).where(
        monitored.c.monitor_id == alarm.monitor_id, silent
    )
    newest = query.order_by(monitored.c.at.desc()).limit(min(alarm.scored, _MOST_RUNS))
    rows = unit.connection.execute(newest).all()
    first = min((row.at for row in rows), default=None)
    return alarm.model_copy(
        update={
            "since": None if first is None else moment_of(first),
            "run_ids": [row.run_id for row in rows if row.run_id is not None],
        }
    )


def _of(monitor_id: str, conversation_key: str) -> tuple[Any, Any]:
    return monitored.c.monitor_id == monitor_id, monitored.c.conversation_key == conversation_key


def _locked_review(unit: Transaction, review: MonitorReview) -> AnyRow:
    """The row of a conversation, made where it is missing and held until the end of the transaction."""
    row = {
        "monitor_id": review.monitor_id,
        "conversation_key": review.conversation_key,
        "conversation_id": review.conversation_id,
        "revision": -1,
        "outcome": review.outcome,
        "reason": "",
        "at": review.at_ms,
        "reviewed": now_ms(),
    }
    unit.connection.execute(unit.insert_into(monitored).values(row).on_conflict_do_nothing())
    query = select(monitored).where(*_of(review.monitor_id, review.conversation_key))
    return unit.connection.execute(query.with_for_update()).one()


def _locked_test(unit: Transaction, monitor_id: str) -> Mapping[str, Any] | None:
    row: dict[str, Any] = {"monitor_id": monitor_id, "body": {}}
    unit.connection.execute(unit.insert_into(monitor_tests).values(row).on_conflict_do_nothing())
    query = select(monitor_tests.c.body).where(monitor_tests.c.monitor_id == monitor_id)
    return unit.connection.execute(query.with_for_update()).scalar_one() or None


def monitor_test(unit: Transaction, monitor_id: str) -> Mapping[str, Any] | None:
    """A monitor's tests as they are kept."""
    query = select(monitor_tests.c.body).where(monitor_tests.c.monitor_id == monitor_id)
    return unit.connection.execute(query).scalar_one_or_none() or None


def restart_monitor(unit: Transaction, monitor_id: str) -> None:
    """Begin the tests of a monitor anew, and end its alarms. What it has reviewed stays."""
    unit.connection.execute(delete(monitor_tests).where(monitor_tests.c.monitor_id == monitor_id))
    end_alarms(unit, monitor_id)


def reserve_judge_calls(unit: Transaction, monitor_id: str, day: str, calls: int, most: int) -> bool:
    """Set aside calls of judges for a day, unless that would be more than the day has."""
    row = {"monitor_id": monitor_id, "day": day, "calls": 0}
    unit.connection.execute(unit.insert_into(monitor_budgets).values(row).on_conflict_do_nothing())
    spent = monitor_budgets.c.calls
    fits = (*_day(monitor_id, day), spent + calls <= most)
    return (
        unit.connection.execute(update(monitor_budgets).where(*fits).values(calls=spent + calls)).rowcount > 0
    )


def settle_judge_calls(unit: Transaction, monitor_id: str, day: str, change: int) -> None:
    """Put right what was set aside, once it is known how many calls there were."""
    calls = monitor_budgets.c.calls + change
    unit.connection.execute(update(monitor_budgets).where(*_day(monitor_id, day)).values(calls=calls))


def judge_calls(unit: Transaction, monitor_id: str, day: str) -> int:
    """How many calls of judges a monitor has made or set aside in a day."""
    query = select(monitor_budgets.c.calls).where(*_day(monitor_id, day))
    return unit.connection.execute(query).scalar_one_or_none() or 0


def _day(monitor_id: str, day: str) -> tuple[Any, Any]:
    return monitor_budgets.c.monitor_id == monitor_id, monitor_budgets.c.day == day


class BucketCount(NamedTuple):
    """How many conversations that took place in one stretch of time came to an outcome."""

    start_ms: int
    outcome: str
    number: int


def monitored_counts(
    unit: Transaction, monitor_id: str, since_ms: int, until_ms: int, bucket_ms: int
) -> list[BucketCount]:
    """The conversations of a monitor by when they took place and what they came to, oldest first."""
    bucket = (monitored.c.at // bucket_ms).label("bucket")
    query = (
        select(bucket, monitored.c.outcome, func.count())
        .where(monitored.c.monitor_id == monitor_id, monitored.c.at >= since_ms, monitored.c.at < until_ms)
        .group_by(bucket, monitored.c.outcome)
        .order_by(bucket)
    )
    return [
        BucketCount(start * bucket_ms, outcome, number)
        for start, outcome, number in unit.connection.execute(query)
    ]


def old_executions(unit: Transaction, monitor_id: str, before: int) -> list[str]:
    """The executions of which everything was reviewed before a moment."""
    mine = (monitored.c.monitor_id == monitor_id, monitored.c.execution_id.is_not(None))
    query = select(monitored.c.execution_id).where(*mine).group_by(monitored.c.execution_id)
    return list(unit.connection.execute(query.having(func.max(monitored.c.reviewed) < before)).scalars())


def delete_reviews(unit: Transaction, monitor_id: str, before: int) -> int:
    """Some of the reviews that are older than a moment, with the budgets of those days."""
    old = (monitored.c.monitor_id == monitor_id, monitored.c.reviewed < before)
    keys = select(monitored.c.conversation_key).where(*old).limit(DELETE_BATCH)
    ids = list(unit.connection.execute(keys).scalars())
    which = (monitored.c.monitor_id == monitor_id, monitored.c.conversation_key.in_(ids))
    unit.connection.execute(delete(monitored).where(*which))
    day = moment_of(before).date().isoformat()
    spent = (monitor_budgets.c.monitor_id == monitor_id, monitor_budgets.c.day < day)
    unit.connection.execute(delete(monitor_budgets).where(*spent))
    return len(ids)


def forget_monitor(unit: Transaction, monitor_id: str) -> None:
    """Delete what belongs to a monitor alone; its executions stay."""
    for table in (monitored, monitor_tests, monitor_budgets, alarms):
        unit.connection.execute(delete(table).where(table.c.monitor_id == monitor_id))
