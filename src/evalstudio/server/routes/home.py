"""``/api/home`` and ``/api/search``: the state of a project in one answer, and anything in it by its name."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Query
from pydantic import StringConstraints

from ...execution.home import HomeCards, home_cards
from ...project.documents import KINDS
from ...project.entities import Execution, RunSummary, Subject
from ...storage.contract import Filters
from ...storage.errors import NotFound
from ..api_router import ApiRouter
from ..middleware import JsonRoute
from ..requests import Studio, StudioDep
from ..shapes.system import SearchHit

router = ApiRouter(tags=["home"], route_class=JsonRoute)

_EACH = 6
_ID = re.compile(r"[0-9a-z]{21}")
Searched = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


@router.get("/home", operation_id="getHome")
async def home(studio: StudioDep) -> HomeCards:
    """A card per eval: its pass rate, the difference to its baseline, what newly fails, its requirements."""
    return await home_cards(studio.store, studio.judged)


@router.get("/search", operation_id="search")
async def search(studio: StudioDep, text: Annotated[Searched, Query()]) -> list[SearchHit]:
    """Definitions, executions and runs with this in their name, or the one of this id; a few of each."""
    hits = await _by_id(studio, text) if _ID.fullmatch(text) else []
    for kind in KINDS:
        page = await studio.store.list_of(kind, Filters(text=text), limit=_EACH)
        hits += [SearchHit(kind=kind, id=one.id, name=one.name) for one in page.items]
    executions = await studio.store.executions(Filters(text=text), limit=_EACH)
    runs = await studio.store.runs(Filters(text=text), limit=_EACH)
    return hits + [_execution(one) for one in executions.items] + [_run(one) for one in runs.items]


async def _by_id(studio: Studio, identity: str) -> list[SearchHit]:
    try:
        return [_execution(await studio.store.execution(identity))]
    except NotFound:
        pass
    try:
        return [_run(await studio.store.run(identity))]
    except NotFound:
        return []


def _execution(one: Execution) -> SearchHit:
    return SearchHit(
        kind="execution", id=one.id, name=one.eval_name or "Single run", created_at=one.created_at
    )


def _run(one: RunSummary) -> SearchHit:
    return SearchHit(
        kind="run",
        id=one.id,
        name=Subject.of(one).label,
        created_at=one.created_at,
        outcome=one.result.outcome if one.result else None,
    )
