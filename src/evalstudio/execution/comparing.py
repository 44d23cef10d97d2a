"""Comparing executions: which two are meant, reading them in pages, and the runs before them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput
from ..project.entities import Execution
from ..reporting.comparing import compare
from ..reporting.comparison import ComparedSide, ComparisonResult
from ..reporting.comparison_rows import ComparedRow, ComparisonTable, MeasureKey, Parts, SideName
from ..reporting.paired import ALPHA
from ..storage.comparing import COST_ROLES, ContentHashes, StoredResult
from ..storage.contract import Filters, Snapshot, cursor_after
from .baselines import by_itself, find_execution
from .environment import environment_changes

if TYPE_CHECKING:
    from ..storage.store import SqlStore

# A drop is held to so many executions before the base.
HISTORY = 20
# Of a scenario: what does not ask or judge, and what judges. Everything else asks.
_NAMING = frozenset({"name", "tags", "personaIds", "cases"})
_JUDGING = frozenset(
    {
        "evaluators",
        "criteria",
        "successCriteria",
        "failureCriteria",
        "failureCriteriaMode",
        "stopOnFailure",
        "groundTruth",
        "context",
    }
)


@dataclass(frozen=True, slots=True)
class ComparisonRequest:
    """Which two to compare, in the words of the command line and the API."""

    base: str
    candidate: str
    eval_id: str | None = None
    connectors: tuple[str, str] | None = None
    alpha: float = ALPHA
    min_effect: float = 0.0
    allow_gone: bool = False


async def compare_named(store: SqlStore, request: ComparisonRequest) -> ComparisonResult:
    """Compare two executions by id, ``last``, ``last~1`` or a baseline's name."""
    base, candidate = await _both(store, request)
    if base.id == candidate.id and request.connectors is None:
        raise InvalidInput(f"base and candidate are the same execution ({base.id}); name another base")
    return await compare_executions(
        store,
        base,
        candidate,
        connectors=request.connectors,
        alpha=request.alpha,
        min_effect=request.min_effect,
        allow_gone=request.allow_gone,
    )


async def _both(store: SqlStore, request: ComparisonRequest) -> tuple[Execution, Execution]:
    """The one that needs no eval to be found comes first: it says which eval is meant."""
    if await by_itself(store, request.candidate, request.eval_id) is not None:
        candidate = await find_execution(store, request.candidate, eval_id=request.eval_id)
        eval_id = request.eval_id or candidate.eval_id
        base = await find_execution(store, request.base, eval_id=eval_id, other_than=candidate)
        return base, candidate
    base = await find_execution(store, request.base, eval_id=request.eval_id)
    eval_id = request.eval_id or base.eval_id
    return base, await find_execution(store, request.candidate, eval_id=eval_id, other_than=base)


async def compare_executions(
    store: SqlStore,
    base: Execution,
    candidate: Execution,
    *,
    connectors: tuple[str, str] | None = None,
    alpha: float = ALPHA,
    min_effect: float = 0.0,
    allow_gone: bool = False,
) -> ComparisonResult:
    """Compare two executions, or two connectors (by name or id) of one or two executions."""
    base_connectors = await store.connectors_of(base.id)
    candidate_connectors = await store.connectors_of(candidate.id)
    chosen: tuple[str | None, str | None] = (None, None)
    if connectors is not None:
        chosen = (
            connector_named(base_connectors, connectors[0]),
            connector_named(candidate_connectors, connectors[1]),
        )
    # One agent against one agent: which is which is told, and does not keep their subjects apart.
    # Recordings need not say whose they are.
    paired = connectors is not None or max(len(base_connectors), len(candidate_connectors)) <= 1
    rescored = same_conversations(base, candidate)
    reader = _Reader(store, by_connector=not paired, by_evaluators=not rescored)
    await reader.read("base", base.id, chosen[0])
    await reader.read("candidate", candidate.id, chosen[1])
    of_base = {chosen[0]} if chosen[0] is not None else set(base_connectors)
    await reader.read_history(base, of_base if paired else None)
    environments = [await store.environment_of(one.id) for one in (base, candidate)]
    notes = [
        f"what the {name} ran with was not kept, so a change of it is not told"
        for name, environment in zip(("base", "candidate"), environments, strict=True)
        if environment is None
    ]
    if rescored:
        notes.insert(0, "both judge the same conversations: what differs, differs by the evaluators")
    # Tests over many subjects take a while, and a server has others to answer.
    return await asyncio.to_thread(
        compare,
        reader.table,
        side_of(base, base_connectors.get(chosen[0] or "")),
        side_of(candidate, candidate_connectors.get(chosen[1] or "")),
        changes=environment_changes(*environments),
        notes=notes,
        alpha=alpha,
        min_effect=min_effect,
        allow_gone=allow_gone,
    )


def same_conversations(one: Execution, other: Execution) -> bool:
    """Whether one of them is the other scored again, or both are the same one scored again."""
    return one.id != other.id and (one.rescored_from or one.id) == (other.rescored_from or other.id)


def connector_named(known: Mapping[str, str], word: str) -> str:
    """The id of the connector of an execution that has this name or id."""
    for identity, name in known.items():
        if word == identity or word.casefold() == name.casefold():
            return identity
    names = ", ".join(sorted(known.values())) or "none"
    raise InvalidInput(f'the execution did not run against a connector "{word}"; it has: {names}')


def side_of(execution: Execution, connector: str | None = None) -> ComparedSide:
    same = ("id", "eval_id", "eval_name", "created_at", "status", "labels", "partial", "replayed")
    same += ("source", "rescored_from")
    return ComparedSide(**{name: getattr(execution, name) for name in same}, connector=connector)


@dataclass(slots=True)
class _Reader:
    """Reads runs in pages into a table; definitions are read once each."""

    store: SqlStore
    by_connector: bool
    by_evaluators: bool = True
    table: ComparisonTable = field(default_factory=ComparisonTable)
    _bodies: dict[str, Mapping[str, Any] | None] = field(default_factory=dict[str, Any])
    _parts: dict[ContentHashes, Parts] = field(default_factory=dict[ContentHashes, Parts])

    async def read(self, side: SideName, execution_id: str, connector: str | None) -> None:
        async for results in self._pages(execution_id, connector):
            await self._learn(result.hashes for result in results)
            for result in results:
                row = ComparedRow(
                    key=self._key(result.names),
                    names=result.names,
                    outcome=result.outcome,
                    parts=self._parts[result.hashes],
                    answer=result.answer,
                    measures=measures_of(result) if result.outcome is not None else (),
                )
                self.table.add(side, row)

    async def _pages(self, execution_id: str, connector: str | None) -> AsyncIterator[list[StoredResult]]:
        cursor: str | None = None
        while True:
            page = await self.store.results_of(
                execution_id, connector=connector, cursor=cursor, numbers_only=True
            )
            yield page.items
            cursor = page.cursor
            if cursor is None:
                return

    async def read_history(self, base: Execution, connectors: set[str] | None) -> None:
        """Executions of the same eval before the base, and of its branch where that is known.

        Those of other branches may have tried something that failed, which is no flakiness.
        """
        if base.eval_id is None:
            return
        branch = base.labels.get("branch")
        labels = [f"branch={branch}"] if isinstance(branch, str) else []
        filters = Filters(eval_id=base.eval_id, status="completed", labels=labels, whole=True)
        page = await self.store.executions(filters, cursor=cursor_after(base.id), limit=HISTORY)
        earlier = await self.store.earlier_runs([one.id for one in page.items]) if page.items else []
        await self._learn(one.hashes for one in earlier)
        for one in earlier:
            if connectors is None or one.names[5] in connectors:
                question = self._parts[one.hashes].question
                self.table.add_history(self._key(one.names), question, one.passed, one.scored)

    def _key(self, names: Sequence[str | None]) -> Hashable:
        scenario_id, scenario_name, case_name, persona_id, _, connector_id, _ = names
        subject = (scenario_id or scenario_name, case_name, persona_id)
        return (*subject, connector_id) if self.by_connector else subject

    async def _learn(self, contents: Iterable[ContentHashes]) -> None:
        """Read the definitions behind hashes that were not met before."""
        new = {one for one in contents if one not in self._parts}
        hashes = {one for content in new for one in (content.scenario, content.persona, content.connector)}
        missing = [one for one in hashes if one is not None and one not in self._bodies]
        if missing:
            bodies = await self.store.snapshot_bodies(sorted(missing))
            self._bodies |= {one: bodies.get(one) for one in missing}
        for content in new:
            self._parts[content] = self._parts_of(content)

    def _parts_of(self, content: ContentHashes) -> Parts:
        scenario = self._bodies.get(content.scenario)
        persona = self._bodies.get(content.persona) if content.persona else None
        connector = self._bodies.get(content.connector)
        asking = _without(scenario, _NAMING | _JUDGING)
        judging = None if scenario is None else {key: scenario.get(key) for key in sorted(_JUDGING)}
        evaluators = content.scenario if judging is None else Snapshot.of(judging).hash
        return Parts(
            # Where the body is damaged or gone, the whole hash decides.
            scenario=content.scenario if asking is None else Snapshot.of(asking).hash,
            case=content.case,
            persona=_hash(content.persona, _without(persona, {"headers", "connectorIds"})),
            # Where the same conversations are scored again, another judgement is what is looked for.
            evaluators=evaluators if self.by_evaluators else "",
            connector=_hash(content.connector, _without(connector, {"name"})),
            evaluator_types=_types(scenario or {}),
            connector_type=(connector or {}).get("type"),
            simulated=scenario is not None and not scenario.get("script"),
        )


def _without(body: Mapping[str, Any] | None, keys: Iterable[str]) -> dict[str, Any] | None:
    return None if body is None else {key: item for key, item in body.items() if key not in set(keys)}


def _hash(whole: str | None, body: Mapping[str, Any] | None) -> str | None:
    return whole if body is None else Snapshot.of(body).hash


def _types(scenario: Mapping[str, Any]) -> frozenset[str]:
    types = {str(one.get("type")) for one in scenario.get("evaluators") or ()}
    if scenario.get("successCriteria") or scenario.get("failureCriteria"):
        types.add("llm-judge")
    return frozenset(types)


def measures_of(result: StoredResult) -> Iterator[tuple[MeasureKey, float]]:
    """Every number of a run that two sides can be compared by."""
    if result.latency_ms is not None:
        yield ("latency", "latency"), result.latency_ms
    if result.total_tokens is not None:
        yield ("tokens", "agent"), float(result.total_tokens)
    for role, cost in zip(COST_ROLES, result.costs, strict=True):
        if cost is not None:
            yield ("cost", role), cost
    output = result.output
    usage: Mapping[str, Mapping[str, Any]] = output.get("modelUsage") or {}
    for role, used in usage.items():
        if (total := used.get("total_tokens")) is not None:
            yield ("tokens", role), float(total)
    if (score := output.get("overallScore")) is not None:
        yield ("score", "overall score"), score
    metrics: Mapping[str, float] = output.get("metrics") or {}
    for name, value in metrics.items():
        yield ("metric", name), value
    for finding in output.get("evaluatorResults") or ():
        if finding.get("kind") != "assertion" or finding.get("skipped") or finding.get("error") is not None:
            continue
        yield ("evaluator", finding["name"]), 1.0 if finding["success"] else 0.0
        criterion, value = finding.get("criterionName"), finding.get("value")
        if criterion is not None and value is not None:
            yield ("criterion", criterion), value
