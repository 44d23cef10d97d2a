"""What a conversation came to: its turns, its verdict, and how it is shown."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..evaluators.aggregate import EndedBy, Outcome, Verdict
from ..evaluators.contract import Fault, Invocation
from ..evaluators.running import Finding
from ..messages import Message, TokensUsage, text_of
from .preparation import JUDGE


@dataclass(slots=True)
class Turn:
    """One agent invocation with the user message that led to it and the evaluations after it."""

    number: int
    user_message: Message | None
    invocation: Invocation = field(default_factory=Invocation)
    results: list[Finding] = field(default_factory=list[Finding])

    @property
    def messages(self) -> list[Message]:
        return self.invocation.messages


@dataclass(slots=True)
class RunResult:
    """A finished conversation."""

    scenario: str
    verdict: Verdict
    messages: list[Message]
    turns: list[Turn]
    message_count: int = 0
    ended_by: EndedBy | None = None
    error: str | None = None
    thread_id: str | None = None
    state: dict[str, Any] | None = None
    stop_reason: str | None = None
    usage: dict[str, TokensUsage] = field(default_factory=dict[str, TokensUsage])

    @property
    def outcome(self) -> Outcome:
        return self.verdict.outcome

    @property
    def passed(self) -> bool:
        return self.verdict.outcome == "pass"

    @property
    def reason(self) -> str:
        return self.verdict.reason

    @property
    def fault(self) -> Fault | None:
        return self.verdict.fault

    @property
    def score(self) -> float | None:
        return self.verdict.score

    @property
    def overall_score(self) -> float | None:
        return self.verdict.overall_score

    @property
    def metrics(self) -> dict[str, float]:
        return self.verdict.metrics

    @property
    def evaluator_results(self) -> list[Finding]:
        return self.verdict.evaluator_results

    def assert_passed(self) -> None:
        """Raise ``AssertionError`` with the reason and the transcript unless it passed."""
        if not self.passed:
            raise AssertionError(f"{self.scenario}: {self.outcome}: {self.reason}\n\n{self}")

    def output(self) -> dict[str, Any]:
        """The run's output, in the shape it is stored and sent in."""
        latencies = [turn.invocation.latency_ms for turn in self.turns if turn.invocation.messages]
        tokens = [t.invocation.tokens_usage for t in self.turns if t.invocation.tokens_usage is not None]
        shown: dict[str, Any] = {
            "avgLatencyMs": sum(latencies) / len(latencies) if latencies else None,
            "totalLatencyMs": sum(latencies),
            "messageCount": self.message_count,
            "maxMessagesReached": self.ended_by == "limit",
            "endedBy": self.ended_by,
            "stopReason": self.stop_reason or None,
            "tokensUsage": sum(tokens, TokensUsage()).model_dump() if tokens else None,
            "modelUsage": {role: usage.model_dump() for role, usage in self.usage.items()} or None,
            "evaluation": self._evaluation(),
            "evaluatorResults": [result.to_json() for result in self.evaluator_results] or None,
            "metrics": self.metrics or None,
            "overallScore": self.overall_score,
            "coverage": self.verdict.coverage.to_json() if self.verdict.coverage else None,
        }
        return {key: item for key, item in shown.items() if item is not None}

    def _evaluation(self) -> dict[str, Any] | None:
        """What the implicit judge found, under the names it has always had."""
        for result in self.evaluator_results:
            if result.name == JUDGE and result.type == "llm-judge" and result.error is None:
                found = result.metadata
                return {
                    "successMet": found.get("successMet", False),
                    "failureMet": found.get("failureMet", False),
                    "confidence": found.get("confidence"),
                    "reasoning": result.reason,
                }
        return None

    def __str__(self) -> str:
        lines = [f"{self.scenario}: {self.outcome.upper()} ({_printable(self.reason)})"]
        lines += [line for turn in self.turns for line in _turn_lines(turn)]
        if self.metrics:
            lines.append("metrics: " + ", ".join(f"{name} {value:g}" for name, value in self.metrics.items()))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(r.label)}</td><td>{_mark(r)}</td><td>{_shown_value(r)}</td>"
            f"<td>{html.escape(r.reason)}</td></tr>"
            for r in self.evaluator_results
        )
        said = "".join(
            f"<p><b>{html.escape(m.role)}</b>: {html.escape(text_of(m))}</p>" for m in self.messages
        )
        return (
            f"<div><p><b>{html.escape(self.scenario)}</b>: {self.outcome} — {html.escape(self.reason)}</p>"
            f"<table><tr><th>Evaluator</th><th>Result</th><th>Value</th><th>Reason</th></tr>{rows}</table>"
            f"<details><summary>{len(self.messages)} messages</summary>{said}</details></div>"
        )


def _turn_lines(turn: Turn) -> list[str]:
    lines: list[str] = []
    if turn.user_message is not None:
        lines.append(f"  {turn.number}. user: {_printable(text_of(turn.user_message))}")
    for message in turn.messages:
        calls = "".join(f" [calls {call.name}]" for call in message.tool_calls or ())
        lines.append(f"  {turn.number}. {message.role}: {_printable(text_of(message) + calls)}")
    lines += [
        f"       {_mark(r)} {r.name}: {_printable(r.reason)}" for r in turn.results if r.kind == "assertion"
    ]
    return lines


def _printable(text: str) -> str:
    """What agents say is printed without what would steer a terminal; further lines are indented."""
    return "\n      ".join("".join(c if c.isprintable() else " " for c in line) for line in text.splitlines())


def _mark(result: Finding) -> str:
    if result.error is not None:
        return "error"
    if result.kind == "metric":
        return "measured"
    if result.skipped:
        return "skipped"
    return "pending" if result.pending else "pass" if result.success else "fail"


def _shown_value(result: Finding) -> str:
    return "" if result.value is None else f"{result.value:g}"


def usage_of(results: Iterable[Finding]) -> TokensUsage | None:
    """What judges used for these results; nothing where no model was asked."""
    used = [r.metadata["modelUsage"] for r in results if "modelUsage" in r.metadata]
    read = [TokensUsage.model_validate(item) for item in used if isinstance(item, dict)]
    return sum(read, TokensUsage()) if read else None
