"""Scoring the records of a chunk: read, sample, evaluate, and write the result line.

With inline evaluators only, a record is scored without a single await; else a window of records is under
way at once and results come out in the order of the dataset.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import field
from typing import Any

from ..base.json_text import json_bytes, json_text
from ..base.lazy_dataclass import dataclass
from ..base.paths import MISSING, lookup
from ..base.text import cut
from ..evaluators.aggregate import conclude_once, run_evaluators
from ..evaluators.results import Verdict
from ..evaluators.running import call_inline, findings_of, inline_entries
from ..llm.usage import RoleUsage, counting_usage, model_usage
from ..messages import read_cost
from .datasets import BadRecord, Chunk
from .direct import DirectResults
from .plan import ScoringJob
from .rows import Record, RowReader, UnusableRow, in_sample
from .runner import EvaluationRunner
from .summary import DatasetSummary, RecordCount

_WINDOW = 4
_LONGEST_GROUP = 200
NO_GROUP = "(none)"
Result = dict[str, Any]


@dataclass(slots=True)
class ScoredChunk:
    """The results of some records, as lines ready to be written."""

    lines: list[bytes] = field(default_factory=list[bytes])
    share: float = 0.0
    summary: DatasetSummary = field(default_factory=DatasetSummary)
    ids: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    failure: BadRecord | None = None
    _uncounted: list[RecordCount] = field(default_factory=list[RecordCount])

    def add(self, *results: Result) -> None:
        self.count()
        for result in results:
            self.lines.append(json_bytes(result))
            self.ids.append((result["recordId"], result["line"]))
            self.summary.add(result)

    def add_direct(self, record: Record, line: bytes, count: RecordCount) -> None:
        self.lines.append(line)
        self.ids.append((record.id, record.line))
        self._uncounted.append(count)

    def count(self) -> None:
        """Count what was added, together."""
        if self._uncounted:
            self.summary.count_all(self._uncounted)
            self._uncounted.clear()


class Scorer:
    """Scores chunks with one runner."""

    def __init__(self, runner: EvaluationRunner, reader: RowReader, job: ScoringJob) -> None:
        self._runner = runner
        self._reader = reader
        self._job = job
        self._dataset = job.dataset_name
        self._direct = DirectResults(runner, job.dataset_name)
        self._inline = inline_entries(runner.entries) if runner.inline else []
        self._asks_models = any(entry.definition.cost == "llm" for entry in runner.entries)
        self._loop: asyncio.Runner | None = None
        self.stopped = False
        """Set to start no further record; those under way are finished."""
        self.left_over = False
        """Whether records were left because of that."""

    def score_chunk(self, chunk: Chunk) -> ScoredChunk:
        """Score a chunk to its end, or to its first bad record."""
        scored = ScoredChunk(share=chunk.share)
        if self._runner.inline:
            self._score_inline(chunk, scored)
        else:
            # One loop for all chunks: connections to models belong to the loop they were opened on.
            if self._loop is None:
                self._loop = asyncio.Runner()
            self._loop.run(self._score_all(chunk, scored))
        return scored

    def passed_over(self, chunk: Chunk) -> DatasetSummary:
        """What a chunk that is already scored held beside its results: bad records, unsampled ones."""
        scored = ScoredChunk()
        if self._job.skip_bad or self._job.share < 1:
            deque(self._records(chunk, scored), maxlen=0)
        return scored.summary

    def chosen(self, chunk: Chunk) -> Iterator[Record]:
        """The records of a chunk that are in the sample, up to the first bad one unless these are skipped."""
        return self._records(chunk, ScoredChunk())

    def first(self, most: int, chunk: Chunk) -> tuple[Chunk, int]:
        """The chunk up to its first so many chosen records, and how many these are."""
        count = 0
        for record in self.chosen(chunk):
            count += 1
            if count == most:
                return chunk.between(0, record.line), count
        return chunk, count

    async def _score_all(self, chunk: Chunk, scored: ScoredChunk) -> None:
        async for results in self.stream(iter([chunk]), scored):
            scored.add(*results)

    async def stream(self, chunks: Iterator[Chunk], scored: ScoredChunk) -> AsyncIterator[list[Result]]:
        """Results in the dataset's order as they come, a window of records under way at once."""
        most = self._runner.config.concurrency * _WINDOW
        # Texts to embed wait for each other to share a request; only calls of models are held back.
        limit = asyncio.Semaphore(self._runner.config.concurrency if self._asks_models else most)
        window: deque[asyncio.Task[Result]] = deque()
        try:
            for chunk in chunks:
                scored.share = chunk.share
                for record in self._records(chunk, scored):
                    if len(window) >= most:
                        yield await _finished(window)
                    if self.stopped:
                        self.left_over = True
                        break
                    window.append(asyncio.create_task(self._score(record, limit)))
                if scored.failure is not None or self.left_over:
                    break
            while window:
                yield await _finished(window)
        finally:
            for task in window:
                task.cancel()
            await asyncio.gather(*window, return_exceptions=True)

    def _records(self, chunk: Chunk, scored: ScoredChunk) -> Iterator[Record]:
        """The records of a chunk in line order; a bad one ends it unless bad ones are skipped."""
        bad = deque(chunk.bad)
        for number, text in chunk.lines():
            while bad and bad[0].line < number:
                if self._refused(bad.popleft(), scored):
                    return
            if not text or text.isspace():
                continue
            try:
                record = self._reader.record(number, self._reader.parse(number, text))
            except UnusableRow as error:
                if self._refused(BadRecord(self._dataset, number, str(error)), scored):
                    return
                continue
            if self._job.share >= 1 or in_sample(record.id, self._job.share, self._job.seed):
                yield record
            else:
                scored.summary.unsampled += 1
        for problem in bad:
            if self._refused(problem, scored):
                return

    def _refused(self, problem: BadRecord, scored: ScoredChunk) -> bool:
        scored.summary.leave_out(problem.line, problem.message)
        if self._job.skip_bad:
            return False
        scored.failure = problem
        return True

    def _score_inline(self, chunk: Chunk, scored: ScoredChunk) -> None:
        entries, direct = self._inline, self._direct
        grouped = self._job.group_by is not None
        for record in self._records(chunk, scored):
            outcomes = call_inline(entries, record.facts)
            result = direct.result(record, outcomes, self._group(record) if grouped else None)
            if result is not None:
                scored.add_direct(record, *result)
            else:
                findings = findings_of(self._runner.entries, outcomes, record.facts)
                scored.add(self._result(record, conclude_once(findings, record.facts.criteria), {}))
        scored.count()

    async def _score(self, record: Record, limit: asyncio.Semaphore) -> Result:
        with counting_usage() as usage:
            verdict = await run_evaluators(self._runner.entries, record.facts, limit)
        return self._result(record, verdict, usage)

    def _result(self, record: Record, verdict: Verdict, usage: Mapping[str, RoleUsage]) -> Result:
        outcome = self._runner.aggregated(verdict, record.facts)
        outcome.agent_id, outcome.session_id = record.agent_id, record.session_id
        outcome.input_snapshot = {"dataset": self._dataset, "recordId": record.id, "line": record.line}
        outcome.metadata = self._runner.config.metadata
        result = {"recordId": record.id, "line": record.line, **outcome.to_json()}
        result["usage"] = self._usage(record, usage, verdict)
        if (group := self._group(record)) is not None:
            result["group"] = group
        return result

    def _group(self, record: Record) -> str | None:
        return None if self._job.group_by is None else _group(record, self._job.group_by)

    def _usage(
        self, record: Record, usage: Mapping[str, RoleUsage], verdict: Verdict
    ) -> dict[str, float | None]:
        """What the agent says it used, and what judging took; texts embedded together count for one."""
        judged = model_usage(usage, verdict.evaluator_results)
        return {
            "agentTokens": record.agent_tokens,
            "agentCost": read_cost(record.facts.metadata.get("cost")),
            "judgeTokens": judged["judge_tokens"],
            "judgeCost": judged["judge_cost"],
        }


def _group(record: Record, field: str) -> str:
    """The group of a record: its agent, its session, or what its metadata says."""
    own = {"agentId": record.agent_id, "sessionId": record.session_id}
    value = own[field] if field in own else lookup(record.facts.metadata, field)
    if value is None or value is MISSING:
        return NO_GROUP
    return cut(value if isinstance(value, str) else json_text(value), _LONGEST_GROUP)


async def _finished(window: deque[asyncio.Task[Result]]) -> list[Result]:
    """The first result when it comes, and those behind it that are there by then."""
    results = [await window.popleft()]
    while window and window[0].done():
        results.append(window.popleft().result())
    return results
