"""What a conversation came to: its turns, its verdict, and how it is shown."""

from __future__ import annotations

import html
from dataclasses import field
from typing import Any

from ..base.lazy_dataclass import dataclass
from ..base.text import printable
from ..evaluators.contract import Fault, delegated
from ..evaluators.results import Attempt, EndedBy, Finding, Outcome, Turn, Verdict
from ..messages import Message, TokensUsage, text_of
from .preparation import JUDGE


class _HasVerdict:
    """What a run's verdict says, as attributes of the run."""

    __slots__ = ()

    outcome: Outcome = delegated("verdict.outcome")
    reason: str = delegated("verdict.reason")
    fault: Fault | None = delegated("verdict.fault")
    score: float | None = delegated("verdict.score")
    overall_score: float | None = delegated("verdict.overall_score")
    metrics: dict[str, float] = delegated("verdict.metrics")
    evaluator_results: list[Finding] = delegated("verdict.evaluator_results")


@dataclass(slots=True)
class RunResult(_HasVerdict):
    """A finished conversation."""

    scenario: str
    verdict: Verdict
    messages: list[Message]
    turns: list[Turn]
    message_count: int = 0
    ended_by: EndedBy | None = None
    ended_at: int | None = None
    """The turn after which a live run would have ended, where the conversation went on."""
    error: str | None = None
    traceback: str | None = None
    thread_id: str | None = None
    state: dict[str, Any] | None = None
    stop_reason: str | None = None
    usage: dict[str, TokensUsage] = field(default_factory=dict[str, TokensUsage])
    failed_attempts: list[Attempt] = field(default_factory=list[Attempt])
    """The attempts at the call that was given up, where there were several."""
    hook_attempts: dict[str, list[Attempt]] = field(default_factory=dict[str, list[Attempt]])
    interrupted: bool = False
    """Whether this process was stopped in the middle of it, so that it says nothing of the agent."""

    @property
    def passed(self) -> bool:
        return self.verdict.outcome == "pass"

    @property
    def all_findings(self) -> list[Finding]:
        """What was found after every turn and at the end."""
        of_turns = [finding for turn in self.turns for finding in turn.results]
        return [*of_turns, *self.verdict.evaluator_results]

    @property
    def tokens_usage(self) -> TokensUsage | None:
        """What the agent reported over all turns; nothing where it never did."""
        reported = [turn.tokens_usage for turn in self.turns if turn.tokens_usage is not None]
        return sum(reported, TokensUsage()) if reported else None

    def assert_passed(self) -> None:
        """Raise ``AssertionError`` with the reason and the transcript unless it passed."""
        if not self.passed:
            raise AssertionError(f"{self.scenario}: {self.outcome}: {self.reason}\n\n{self}")

    def output(self) -> dict[str, Any]:
        """The run's output, in the shape it is stored and sent in."""
        answered = [turn for turn in self.turns if turn.messages]
        latencies = [turn.latency_ms for turn in answered if turn.latency_ms is not None]
        tokens = self.tokens_usage
        fields: dict[str, Any] = {
            "avgLatencyMs": sum(latencies) / len(latencies) if latencies else None,
            # A turn that nobody timed may have taken any time: there is no sum then.
            "totalLatencyMs": sum(latencies) if len(latencies) == len(answered) else None,
            "messageCount": self.message_count,
            "maxMessagesReached": self.ended_by == "limit",
            "endedBy": self.ended_by,
            "endedAtTurn": self.ended_at,
            "state": self.state,
            "stopReason": self.stop_reason or None,
            "tokensUsage": tokens.model_dump() if tokens else None,
            "modelUsage": {role: usage.model_dump() for role, usage in self.usage.items()} or None,
            "evaluation": self._evaluation(),
            "evaluatorResults": [result.to_json() for result in self.evaluator_results] or None,
            "metrics": self.metrics or None,
            "criterionScores": self.verdict.criterion_scores or None,
            "overallScore": self.overall_score,
            "coverage": self.verdict.coverage.to_json() if self.verdict.coverage else None,
            "hookAttempts": {
                hook: [attempt.to_json() for attempt in attempts]
                for hook, attempts in self.hook_attempts.items()
            }
            or None,
            "traceback": self.traceback,
        }
        return {key: item for key, item in fields.items() if item is not None}

    def _evaluation(self) -> dict[str, Any] | None:
        """What the implicit judge found, under the names it has always had."""
        for result in self.evaluator_results:
            answered = result.error is None and not result.skipped
            if result.name == JUDGE and result.type == "llm-judge" and answered:
                answer = result.metadata
                return {
                    "successMet": answer.get("successMet", False),
                    "failureMet": answer.get("failureMet", False),
                    "confidence": answer.get("confidence"),
                    "reasoning": result.reason,
                }
        return None

    def __str__(self) -> str:
        lines = [f"{self.scenario}: {self.outcome.upper()} ({_indented(self.reason)})"]
        lines += [line for turn in self.turns for line in _turn_lines(turn)]
        if self.metrics:
            lines.append("metrics: " + ", ".join(f"{name} {value:g}" for name, value in self.metrics.items()))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = ""
        for r in self.evaluator_results:
            cells = (r.label, r.word, "" if r.value is None else f"{r.value:g}", r.reason)
            rows += f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"
        transcript = "".join(
            f"<p><b>{html.escape(m.role)}</b>: {html.escape(text_of(m))}</p>" for m in self.messages
        )
        return (
            f"<div><p><b>{html.escape(self.scenario)}</b>: {self.outcome} — {html.escape(self.reason)}</p>"
            f"<table><tr><th>Evaluator</th><th>Result</th><th>Value</th><th>Reason</th></tr>{rows}</table>"
            f"<details><summary>{len(self.messages)} messages</summary>{transcript}</details></div>"
        )


def _turn_lines(turn: Turn) -> list[str]:
    lines: list[str] = []
    if turn.user_message is not None:
        lines.append(f"  {turn.number}. user: {_indented(text_of(turn.user_message))}")
    for message in turn.messages:
        calls = "".join(f" [calls {call.name}]" for call in message.tool_calls or ())
        lines.append(f"  {turn.number}. {message.role}: {_indented(text_of(message) + calls)}")
    lines += [
        f"       {r.word} {r.name}: {_indented(r.reason)}" for r in turn.results if r.kind == "assertion"
    ]
    return lines


def _indented(text: str) -> str:
    """What agents say is printed without what would steer a terminal; further lines are indented."""
    return "\n      ".join(printable(line, kept="", instead=" ") for line in text.splitlines())
