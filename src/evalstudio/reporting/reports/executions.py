"""The report of an execution, read from a store or a server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Hashable
from dataclasses import field, replace

from ...base.lazy_dataclass import dataclass
from ...base.text import counted, were
from ...evaluators.results import Finding, RunOutput
from ...project.entities import Execution, RunSummary, Subject
from ...storage.contract import Records
from ..evidence import ExecutionEvidence, each_run, outcome_of
from ..intervals import rate_interval, sums_interval
from ..requirements import RequirementResult, Standing
from ..statistics import ExecutionSummary
from .model import (
    BINS,
    Measure,
    ReportFinding,
    ReportHead,
    ReportRun,
    SubjectLine,
    Transcript,
    latency_bin,
)

_MOST_MEASURES = 50
# Of each measure the sum and the number of values of each subject: memory must not grow with repetitions.
_Sums = dict[str, dict[Hashable, tuple[float, int]]]


@dataclass(slots=True)
class HeadBuilder:
    """Gathers what a head shows, run by run: numbers and the first reason of each subject."""

    evidence: ExecutionEvidence
    reasons: dict[Hashable, str] = field(default_factory=dict[Hashable, str])
    latencies: list[int] = field(default_factory=lambda: [0] * BINS)
    sums: _Sums = field(default_factory=lambda: defaultdict[str, dict[Hashable, tuple[float, int]]](dict))

    def add(self, run: RunSummary, output: RunOutput | None) -> None:
        self.evidence.add(run, output)
        key = Subject.key_of(run)
        if run.result is not None and run.result.outcome != "pass":
            self.reasons.setdefault(key, run.result.reason)
        if run.latency_ms is not None:
            self.latencies[latency_bin(run.latency_ms)] += 1
            self._value("latencyMs", key, run.latency_ms)
        if output is not None:
            for values in (output.get("metrics", {}), output.get("criterionScores", {})):
                for name, value in values.items():
                    self._value(name, key, value)

    def _value(self, name: str, key: Hashable, value: float) -> None:
        if name in self.sums or len(self.sums) < _MOST_MEASURES:
            total, number = self.sums[name].get(key, (0.0, 0))
            self.sums[name][key] = total + value, number + 1

    def head(
        self,
        execution: Execution,
        summary: ExecutionSummary,
        standing: Standing,
        requirements: list[RequirementResult],
    ) -> ReportHead:
        subjects = self._subjects()
        groups: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for one in subjects:
            groups[one.group].append((one.passed, one.scored))
        return ReportHead(
            title=execution.eval_name or "Trial",
            noun="runs",
            standing=standing,
            counts=summary.counts,
            facts=_facts(execution),
            rate=rate_interval([(one.passed, one.scored) for one in subjects]),
            rates=[(group, rate_interval(counts)) for group, counts in groups.items()],
            subjects=subjects,
            requirements=requirements,
            usage=summary.usage,
            measures=[
                _measure(name, list(subjects.values()))
                for name, subjects in sorted(self.sums.items())
                # The metric of that name measures the same.
                if name != "latencyMs" or "latency" not in self.sums
            ],
            latencies=self.latencies,
            notes=notes_of(execution),
        )

    def _subjects(self) -> list[SubjectLine]:
        return [
            SubjectLine(
                label=one.subject.label,
                group=one.subject.scenario_name,
                passed=one.passed,
                failed=one.failed,
                errored=one.errored,
                unasserted=one.unasserted,
                left=one.left,
                reason=self.reasons.get(key, ""),
            )
            for key, one in self.evidence.subjects.items()
        ]


def _measure(name: str, sums: list[tuple[float, int]]) -> Measure:
    mean = sums_interval(sums)
    if name in ("latency", "latencyMs"):
        mean = replace(mean, low=max(mean.low, 0.0))
    return Measure(name, sum(number for _, number in sums), mean)


def notes_of(execution: Execution) -> list[str]:
    """Why the numbers do not cover all that was meant to run."""
    partial = execution.partial
    left = execution.counts.left
    notes = [f"{counted(left, 'run')} {were(left)} cancelled or not run"] if left else []
    if partial:
        notes.append(f"Not the whole eval: {partial}; it is in no trend and no default baseline")
    return notes


def _facts(execution: Execution) -> list[tuple[str, str]]:
    facts = [("execution", execution.id), ("started", f"{execution.created_at:%Y-%m-%d %H:%M:%S} UTC")]
    if execution.started_at and execution.completed_at:
        seconds = (execution.completed_at - execution.started_at).total_seconds()
        facts.append(("duration", f"{seconds:,.1f} s"))
    if execution.trigger:
        facts.append(("trigger", execution.trigger))
    return [*facts, *((str(name), str(value)) for name, value in execution.labels.items())]


@dataclass(slots=True)
class ExecutionSource:
    """An execution whose head is known: its runs are read again, a page at a time."""

    records: Records
    execution: Execution
    head: ReportHead

    async def runs(self) -> AsyncIterator[ReportRun]:
        async for run, output in each_run(self.records, self.execution.id):
            yield self._run(run, output)

    def _run(self, run: RunSummary, output: RunOutput | None) -> ReportRun:
        result = run.result
        outcome = outcome_of(run, agent_errors_fail=self.execution.agent_errors_fail) or run.status
        return ReportRun(
            id=run.id,
            label=Subject.of(run).label,
            group=run.scenario_name,
            outcome=outcome,
            repetition=run.repetition,
            attempt=run.attempt,
            case=run.case_name,
            persona=run.persona_name,
            connector=run.connector_name,
            fault=result.fault if result else None,
            reason=result.reason if result else run.error or "",
            latency_ms=run.latency_ms,
            tokens=run.total_tokens,
            score=result.score if result else None,
            turns=run.turn_count,
            metrics=dict((output.get("metrics") or {}) if output else {}),
            findings=_bad_findings(output),
        )

    async def transcript(self, run: ReportRun) -> Transcript:
        whole = await self.records.run(run.id)
        lines: list[tuple[str, str]] = []
        for message in whole.messages:
            calls = "".join(
                f"\n[calls {call.name} {call.function.arguments}]" for call in message.tool_calls or ()
            )
            lines.append((message.role, (message.text + calls).strip()))
        return lines


def _bad_findings(output: RunOutput | None) -> list[ReportFinding]:
    findings: list[Finding] = (output.get("evaluatorResults") or []) if output else []
    return [
        ReportFinding(one.label, one.word, one.reason, one.turn)
        for one in findings
        if one.kind == "assertion" and one.word in ("fail", "error")
    ]
