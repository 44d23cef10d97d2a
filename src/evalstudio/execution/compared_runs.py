"""The runs behind one row of a comparison, and what changed in the definitions they were made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import Field

from ..base.json_text import json_text
from ..base.lazy_dataclass import dataclass
from ..base.text import cut
from ..project.entities import RunSummary
from ..project.secrets import masked
from ..reporting.statistics import Figure
from ..storage.contract import Filters
from .comparing import connector_named

if TYPE_CHECKING:
    from ..storage.store import SqlStore

MOST_RUNS = 100
MOST_CHANGES = 200
_LONGEST = 2_000
_ABSENT = object()


class DefinitionChange(Figure):
    """One place in which a definition differs; what is not there is null."""

    definition: Literal["scenario", "case", "persona", "connector"]
    path: str
    base: str | None
    candidate: str | None


class ComparedRuns(Figure):
    """The runs of one subject on both sides."""

    base: list[RunSummary]
    candidate: list[RunSummary]
    definitions: list[DefinitionChange] = Field(description="Between the first runs of the two sides")


@dataclass(frozen=True, slots=True)
class SubjectQuery:
    """Which runs of an execution are one subject's."""

    scenario: str
    case_name: str | None = None
    persona_id: str | None = None
    connector_id: str | None = None


async def compared_runs(
    store: SqlStore,
    base: str,
    candidate: str,
    subject: SubjectQuery,
    connectors: tuple[str, str] | None = None,
) -> ComparedRuns:
    """The runs of a subject in two executions, or on two connectors (by name or id), as compared."""
    sides = await store.connectors_of(base), await store.connectors_of(candidate)
    chosen: tuple[str | None, str | None] = (subject.connector_id, subject.connector_id)
    if connectors is not None:
        chosen = connector_named(sides[0], connectors[0]), connector_named(sides[1], connectors[1])
    elif len(sides[0]) == len(sides[1]) == 1:
        # One agent against one agent: which is which does not keep their subjects apart.
        chosen = (None, None)
    then = await _runs(store, base, subject, chosen[0])
    now = await _runs(store, candidate, subject, chosen[1])
    changes: list[DefinitionChange] = []
    if then and now:
        both = await _bodies(store, then[0]), await _bodies(store, now[0])
        changes = list(islice(_changes(*both), MOST_CHANGES))
    return ComparedRuns(base=then, candidate=now, definitions=changes)


async def _runs(
    store: SqlStore, execution_id: str, subject: SubjectQuery, connector_id: str | None
) -> list[RunSummary]:
    filters = Filters(
        execution_id=execution_id,
        scenario_id=subject.scenario,
        persona_id=subject.persona_id,
        connector_id=connector_id,
        case_name=subject.case_name,
    )
    page = await store.runs(filters, limit=MOST_RUNS)
    own = (subject.case_name, subject.persona_id)
    runs = [one for one in page.items if (one.case_name, one.persona_id) == own]
    return sorted(runs, key=lambda one: (one.connector_id or "", one.repetition, one.id))


async def _bodies(store: SqlStore, run: RunSummary) -> dict[str, Any]:
    snapshots = await store.snapshots(run.id)
    bodies: dict[str, Any] = {kind: masked(body) for kind, body in snapshots.items() if body is not None}
    # Which case it is stands in the run; the list of all cases is the scenario's.
    bodies.get("scenario", {}).pop("cases", None)
    case = (await store.run(run.id)).case
    if case is not None:
        bodies["case"] = case.model_dump(mode="json", by_alias=True, exclude_none=True)
    return bodies


def _changes(base: Mapping[str, Any], candidate: Mapping[str, Any]) -> Iterator[DefinitionChange]:
    for kind in ("scenario", "case", "persona", "connector"):
        for path, before, after in differences(base.get(kind, _ABSENT), candidate.get(kind, _ABSENT)):
            yield DefinitionChange(definition=kind, path=path, base=_shown(before), candidate=_shown(after))


def differences(base: object, candidate: object, path: str = "") -> Iterator[tuple[str, object, object]]:
    """Where two documents differ, at the smallest part that does."""
    if isinstance(base, dict) and isinstance(candidate, dict):
        before, after = cast("dict[str, Any]", base), cast("dict[str, Any]", candidate)
        for key in dict.fromkeys((*before, *after)):
            inner = f"{path}.{key}" if path else key
            yield from differences(before.get(key, _ABSENT), after.get(key, _ABSENT), inner)
    elif isinstance(base, list) and isinstance(candidate, list):
        earlier, later = cast("list[Any]", base), cast("list[Any]", candidate)
        for place in range(max(len(earlier), len(later))):
            before, after = (one[place] if place < len(one) else _ABSENT for one in (earlier, later))
            yield from differences(before, after, f"{path}[{place}]")
    elif base != candidate and not (_empty(cast(object, base)) and _empty(candidate)):
        yield path, cast(object, base), candidate


def _empty(value: object) -> bool:
    """Not given, or given as nothing: the same to a reader."""
    return value is _ABSENT or value is None or value in ("", [], {})


def _shown(value: object) -> str | None:
    if value is _ABSENT:
        return None
    text = value if isinstance(value, str) else json_text(value)
    return cut(text, _LONGEST)
