"""Scenarios, personas and connectors as they were, kept once per content."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite

from .contract import Snapshot
from .json_text import loads
from .schema import snapshots
from .transaction import Unit, now_ms

_REMEMBERED = 256


def keep(unit: Unit, found: Mapping[str, Snapshot]) -> None:
    """Keep snapshots that are not kept yet, and mark all as used now, so that pruning spares them."""
    if not found:
        return
    moment = now_ms()
    # Sorted, so that two processes queueing the same things never wait for each other in a circle.
    rows = [{"hash": key, "used": moment, "body": found[key].body} for key in sorted(found)]
    insert = (postgresql.insert if unit.is_postgres else sqlite.insert)(snapshots)
    unit.connection.execute(
        insert.on_conflict_do_update(index_elements=["hash"], set_={"used": insert.excluded.used}), rows
    )


class Bodies:
    """Snapshots already read: content never changes under its hash."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Mapping[str, Any]] = OrderedDict()

    def of(self, unit: Unit, hashes: Iterable[str | None]) -> dict[str, Mapping[str, Any]]:
        wanted = {key for key in hashes if key is not None}
        found = {key: self._known[key] for key in wanted if key in self._known}
        if missing := sorted(wanted - found.keys()):
            rows = unit.connection.execute(
                select(snapshots.c.hash, snapshots.c.body).where(snapshots.c.hash.in_(missing))
            )
            found |= {row.hash: loads(row.body) for row in rows}
        for key, body in found.items():
            self._known[key] = body
            self._known.move_to_end(key)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found
