"""Spans of production and the conversations they belong to.

A span belongs to one conversation: to the one it names, else to that of its trace. The same span again
changes nothing. What comes for a complete conversation opens it again, as its next revision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from sqlalchemy import Integer, Table, and_, bindparam, case, delete, insert, select, update

from ..base.lazy_dataclass import dataclass
from ..project.entities import new_id
from .columns import short_key
from .rows import AnyRow
from .schema import COMPLETE, OPEN_CONVERSATION, TAKEN, conversations, spans, traces
from .transaction import Transaction, now_ms, shared_now_ms

Status = Literal["open", "complete"]
_BY_TRACE, _BY_NAME = "trace:", "id:"
_IN_ONE_QUERY = 500
_DELETED_SPANS = 5_000
_DELETED_CONVERSATIONS = 500
_table = conversations.c


@dataclass(frozen=True, slots=True)
class NewSpan:
    """A span as it is kept. ``name`` is what it calls its conversation, if anything."""

    id: bytes
    trace_id: bytes
    name: str | None
    body: bytes
    size: int


@dataclass(frozen=True, slots=True)
class ConversationLimits:
    """How much one conversation may hold."""

    most_spans: int
    most_bytes: int


class AddedSpans(NamedTuple):
    """What became of a batch."""

    stored: int
    known: int
    refused: int


class ClaimedConversation(NamedTuple):
    """A conversation that one process takes care of for a while."""

    id: str
    name: str
    revision: int
    refused: int
    has_name: bool
    attempts: int


def add_spans(unit: Transaction, batch: Sequence[NewSpan], limits: ConversationLimits) -> AddedSpans:
    """Keep the spans that are not there yet, each with its conversation."""
    unique = {span.id: span for span in batch}
    known = _known(unit, spans, unique)
    fresh = [span for key, span in unique.items() if key not in known]
    if not fresh:
        return AddedSpans(0, len(batch), 0)
    names = _names_of_traces(fresh)
    homes = _homes(unit, fresh, names)
    if unit.is_postgres:
        # Another server may be storing the same spans: one at a time for each conversation.
        ids = sorted({home.id for home in homes.values()})
        unit.connection.execute(
            select(_table.id).where(_table.id.in_(ids)).order_by(_table.id).with_for_update()
        )
        known = _known(unit, spans, unique)
        fresh = [span for span in fresh if span.id not in known]
    rows: list[dict[str, Any]] = []
    changes: dict[str, dict[str, Any]] = {}
    refused = 0
    for span in fresh:
        home = homes[_key(span, names, homes)]
        change = changes.setdefault(home.id, {"conversation": home.id, "spans": 0, "bytes": 0, "refused": 0})
        if (
            home.spans + change["spans"] >= limits.most_spans
            or home.bytes + change["bytes"] + span.size > limits.most_bytes
        ):
            change["refused"] += 1
            refused += 1
            continue
        change["spans"] += 1
        change["bytes"] += span.size
        rows.append({"id": span.id, "trace_id": span.trace_id, "conversation_id": home.id, "body": span.body})
    if rows:
        unit.connection.execute(_ignoring(unit, spans), rows)
    _note(unit, changes)
    return AddedSpans(len(rows), len(batch) - len(fresh), refused)


def _known(unit: Transaction, table: Table, keys: Collection[bytes]) -> set[bytes]:
    stored: set[bytes] = set()
    listed = list(keys)
    for start in range(0, len(listed), _IN_ONE_QUERY):
        query = select(table.c.id).where(table.c.id.in_(listed[start : start + _IN_ONE_QUERY]))
        stored.update(bytes(key) for key in unit.connection.execute(query).scalars())
    return stored


def _names_of_traces(batch: Iterable[NewSpan]) -> dict[bytes, str]:
    """What a trace calls its conversation, by the first of its spans that says so."""
    names: dict[bytes, str] = {}
    for span in batch:
        if span.name is not None:
            names.setdefault(span.trace_id, span.name)
    return names


class _Home(NamedTuple):
    """The conversation a span belongs to."""

    id: str
    key: str
    spans: int
    bytes: int
    is_fresh: bool


def _key(span: NewSpan, names: dict[bytes, str], homes: dict[str, _Home]) -> str:
    if span.name is not None:
        return _BY_NAME + short_key(span.name)
    of_trace = _BY_TRACE + span.trace_id.hex()
    if of_trace in homes:
        return of_trace
    return _BY_NAME + short_key(names[span.trace_id])


def _homes(unit: Transaction, batch: Sequence[NewSpan], names: dict[bytes, str]) -> dict[str, _Home]:
    """The conversations of a batch by their keys, made where they are missing.

    Under the key of a trace stands the conversation that the trace belongs to, whatever its own key is.
    """
    trace_ids = sorted({span.trace_id for span in batch})
    mapped = _conversations_of_traces(unit, trace_ids)
    named = sorted({_BY_NAME + short_key(span.name) for span in batch if span.name is not None})
    titles = {_BY_NAME + short_key(span.name): span.name for span in batch if span.name is not None}
    lone = [one for one in trace_ids if one not in mapped and one not in names]
    titles |= {_BY_TRACE + one.hex(): one.hex() for one in lone}
    homes = _made(unit, [*named, *(_BY_TRACE + one.hex() for one in lone)], titles)
    fresh_traces: list[dict[str, Any]] = []
    moved: dict[str, _Home] = {}
    for trace_id in trace_ids:
        key, name = _BY_TRACE + trace_id.hex(), names.get(trace_id)
        own = homes[_BY_NAME + short_key(name)] if name is not None else homes.get(key)
        current = mapped.get(trace_id)
        if current is None and own is not None:
            fresh_traces.append({"id": trace_id, "conversation_id": own.id})
            homes[key] = own
        elif current is not None and name is not None and own is not None and current.is_fresh:
            if current.id not in moved:
                moved[current.id] = own
                _move(unit, current, own)
            homes[key] = moved[current.id]
        elif current is not None:
            homes[key] = moved.get(current.id, current)
    if fresh_traces:
        unit.connection.execute(_ignoring(unit, traces), fresh_traces)
    return homes


def _conversations_of_traces(unit: Transaction, trace_ids: Sequence[bytes]) -> dict[bytes, _Home]:
    homes: dict[bytes, _Home] = {}
    for start in range(0, len(trace_ids), _IN_ONE_QUERY):
        query = (
            select(traces.c.id.label("trace_id"), *_HOME)
            .join_from(traces, conversations, traces.c.conversation_id == _table.id)
            .where(traces.c.id.in_(trace_ids[start : start + _IN_ONE_QUERY]))
        )
        homes |= {bytes(row.trace_id): _home(row) for row in unit.connection.execute(query).all()}
    return homes


_HOME = (_table.id, _table.key, _table.spans, _table.bytes, _table.status, _table.handed)


def _home(row: AnyRow) -> _Home:
    fresh = row.key.startswith(_BY_TRACE) and row.status == "open" and row.handed == 0
    return _Home(row.id, row.key, row.spans, row.bytes, fresh)


def _made(unit: Transaction, keys: Sequence[str], titles: dict[str, str]) -> dict[str, _Home]:
    homes = _by_key(unit, keys)
    missing = [key for key in keys if key not in homes]
    if missing:
        unit.connection.execute(_ignoring(unit, conversations), [_new(key, titles[key]) for key in missing])
        homes |= _by_key(unit, missing)
    return homes


def _by_key(unit: Transaction, keys: Sequence[str]) -> dict[str, _Home]:
    homes: dict[str, _Home] = {}
    for start in range(0, len(keys), _IN_ONE_QUERY):
        query = select(*_HOME).where(_table.key.in_(keys[start : start + _IN_ONE_QUERY]))
        homes |= {row.key: _home(row) for row in unit.connection.execute(query).all()}
    return homes


def _new(key: str, name: str) -> dict[str, Any]:
    moment = now_ms()
    counts = dict.fromkeys(("handed", "attempts", "spans", "late", "refused", "bytes"), 0)
    times = {"first": moment, "last": moment}
    return {"id": new_id(), "key": key, "name": name, "status": "open", "revision": 1, **counts, **times}


def _ignoring(unit: Transaction, table: Table) -> Any:
    """An insert that leaves what is there already: another server may have been faster."""
    if unit.is_postgres:
        return unit.insert_into(table).on_conflict_do_nothing()
    return insert(table).prefix_with("OR IGNORE")


_complete = _table.status == "complete"
_NOTED = (
    update(conversations)
    .where(_table.id == bindparam("conversation"))
    .values(
        spans=_table.spans + bindparam("plus_spans"),
        bytes=_table.bytes + bindparam("plus_bytes"),
        refused=_table.refused + bindparam("plus_refused"),
        late=_table.late + case((_complete, bindparam("plus_spans", type_=Integer)), else_=0),
        revision=_table.revision + case((_complete, 1), else_=0),
        # Whoever holds the old revision finds out by its number.
        lease_until=case((_complete, None), else_=_table.lease_until),
        status="open",
        last=bindparam("moment"),
    )
)


def _note(unit: Transaction, changes: dict[str, dict[str, Any]]) -> None:
    """Add up what came, in one order everywhere, so that two transactions never wait for each other."""
    moment = now_ms()
    values = [
        {
            "conversation": change["conversation"],
            "plus_spans": change["spans"],
            "plus_bytes": change["bytes"],
            "plus_refused": change["refused"],
            "moment": moment,
        }
        for _, change in sorted(changes.items())
    ]
    if values:
        unit.connection.execute(_NOTED, values)


def _move(unit: Transaction, old: _Home, new: _Home) -> None:
    """Put a conversation into another one, of which it turned out to be a part."""
    for table in (spans, traces):
        query = update(table).where(table.c.conversation_id == old.id)
        unit.connection.execute(query.values(conversation_id=new.id))
    unit.connection.execute(delete(conversations).where(_table.id == old.id))
    moved = {"conversation": new.id, "spans": old.spans, "bytes": old.bytes, "refused": 0}
    _note(unit, {new.id: moved})


def claim_conversations(
    unit: Transaction, worker_id: str, quiet_ms: int, limit: int, lease_ms: int
) -> list[ClaimedConversation]:
    """Complete conversations that nobody takes care of; those that have been quiet for long are completed."""
    moment = shared_now_ms(unit)
    free = _table.lease_until.is_(None) | (_table.lease_until <= moment)
    claimed: list[ClaimedConversation] = []
    for which in (and_(OPEN_CONVERSATION, _table.last <= now_ms() - quiet_ms), COMPLETE):
        left = limit - len(claimed)
        query = select(_table.id).where(which, free).order_by(_table.last).limit(left)
        ids = unit.connection.execute(query.with_for_update(skip_locked=True)).scalars().all()
        if ids:
            changed = update(conversations).where(_table.id.in_(ids))
            lease = {"lease_until": moment + lease_ms, "worker_id": worker_id}
            unit.connection.execute(changed.values(status="complete", **lease))
            rows = unit.connection.execute(select(conversations).where(_table.id.in_(ids))).all()
            claimed += map(_claimed, rows)
    return claimed


def _claimed(row: AnyRow) -> ClaimedConversation:
    named = row.key.startswith(_BY_NAME)
    return ClaimedConversation(row.id, row.name, row.revision, row.refused, named, row.attempts)


def holders(unit: Transaction) -> list[str]:
    """Who takes care of a conversation at the moment."""
    workers = select(_table.worker_id).where(TAKEN).distinct()
    return [worker for worker in unit.connection.execute(workers).scalars() if worker]


def release_held(unit: Transaction, worker_ids: Collection[str]) -> None:
    """Free what processes held that are gone for certain."""
    which = _table.worker_id.in_(worker_ids)
    unit.connection.execute(update(conversations).where(which).values(worker_id=None, lease_until=None))


def bodies_of(unit: Transaction, conversation_id: str) -> list[bytes]:
    query = select(spans.c.body).where(spans.c.conversation_id == conversation_id)
    return [bytes(body) for body in unit.connection.execute(query).scalars()]


_SUMMARY = ("started", "turn_count", "total_tokens", "agent", "title", "error", "attributes", "tail")
_DESCRIBED = (
    update(conversations)
    .where(_table.id == bindparam("conversation"), _table.revision == bindparam("current"))
    .values({name: bindparam(f"new_{name}", type_=_table[name].type) for name in _SUMMARY})
)


def describe_conversation(
    unit: Transaction, conversation_id: str, revision: int, summary: dict[str, Any]
) -> bool:
    """Keep what lists show of a conversation; false where it has changed or gone meanwhile."""
    values: dict[str, Any] = {f"new_{name}": summary[name] for name in _SUMMARY}
    values |= {"conversation": conversation_id, "current": revision}
    return unit.connection.execute(_DESCRIBED, values).rowcount > 0


def continue_conversation(unit: Transaction, conversation_id: str, head: str) -> str | None:
    """Put a conversation without a name into the one whose end it began with; its id, if there is one."""
    own = select(*_HOME, _table.tail).where(_table.id == conversation_id)
    old = unit.connection.execute(own).one_or_none()
    same = select(*_HOME).where(_table.tail == head, _table.id != conversation_id)
    same = same.where(_table.key.startswith(_BY_TRACE)).limit(2).with_for_update()
    earlier = unit.connection.execute(same).all()
    # Two conversations may have begun with the same words: then nobody knows which of them goes on.
    if old is None or old.handed or len(earlier) != 1:
        return None
    _move(unit, _home(old), _home(earlier[0]))
    # What goes on from here must find it before it is put together again.
    whole = update(conversations).where(_table.id == earlier[0].id)
    unit.connection.execute(whole.values(tail=old.tail))
    return earlier[0].id


def hand_over(unit: Transaction, conversation_id: str, revision: int) -> None:
    """Note that a revision was judged."""
    which = (_table.id == conversation_id) & (_table.handed < revision)
    done = {"handed": revision, "lease_until": None, "worker_id": None, "attempts": 0, "problem": None}
    unit.connection.execute(update(conversations).where(which).values(done))


def put_off(unit: Transaction, conversation_id: str, revision: int, problem: str, pause_ms: int) -> None:
    """Note why a revision could not be judged, and when it is tried again."""
    which = (_table.id == conversation_id) & (_table.revision == revision)
    later = {"lease_until": shared_now_ms(unit) + pause_ms, "worker_id": None, "problem": problem}
    changed = update(conversations).where(which)
    unit.connection.execute(changed.values(later | {"attempts": _table.attempts + 1}))


def delete_old_conversations(unit: Transaction, before: int) -> int:
    """Delete some of what last came before this moment; 0 when nothing is left."""
    query = select(_table.id, _table.spans).where(_table.last < before).order_by(_table.last)
    ids: list[str] = []
    count = 0
    for row in unit.connection.execute(query.limit(_DELETED_CONVERSATIONS)).all():
        ids.append(row.id)
        count += row.spans
        if count > _DELETED_SPANS:
            break
    if ids:
        for table in (spans, traces):
            unit.connection.execute(delete(table).where(table.c.conversation_id.in_(ids)))
        unit.connection.execute(delete(conversations).where(_table.id.in_(ids)))
    return len(ids)
