"""Judging a conversation, whoever holds it: what is due after a turn, what it found, and the verdict.

The turn loop asks after every turn of a live conversation; ``judge_conversation`` applies the same to one
that exists already, so that the same conversation gets the same verdict whichever way it came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from ..base.lazy_dataclass import dataclass
from ..evaluators.aggregate import Decision, StopConditions, conclude, decide, due, mark_pending
from ..evaluators.contract import Fault, TurnFacts
from ..evaluators.results import EndedBy, Finding, Turn, Verdict, with_later
from ..evaluators.running import run_turn
from ..messages import Message, TokensUsage, text_of
from ..telemetry import begin_turn, end_turn, found_at_the_end
from .preparation import PreparedScenario, Services
from .results import RunResult

StoredFindings = Mapping[tuple[str, int], Sequence[Finding]]
"""What entries found before, by key and turn, where nothing has changed that they looked at."""


@dataclass(slots=True)
class ConversationJudge:
    """The evaluators of a scenario over one conversation, turn by turn."""

    prepared: PreparedScenario
    services: Services
    messages: list[Message]
    turns: list[Turn] = field(default_factory=list[Turn])
    state: dict[str, Any] | None = None
    # The entries that asked on the last turn whether it was the last, and were told that nobody knew.
    unsure: set[str] = field(default_factory=set[str])
    superseded: list[Finding] = field(default_factory=list[Finding])
    stored: StoredFindings = field(default_factory=dict[tuple[str, int], list[Finding]])

    @property
    def findings(self) -> list[list[Finding]]:
        return [turn.results for turn in self.turns]

    async def judge(self, turn: Turn, conditions: StopConditions) -> Decision:
        """Evaluate a turn whose messages are in, and decide whether the conversation goes on."""
        entries, earlier = self.prepared.entries, self.findings
        self.turns.append(turn)
        begin_turn(turn.number)
        facts = self._facts(turn, is_final=conditions.blocked_by is not None)
        turn.results = await run_turn(due(entries, earlier), facts)
        self.unsure = set() if facts.is_final else facts.final_readers
        mark_pending(turn.results)
        end_turn(turn.results, turn.metadata)
        stop = self.prepared.stop_on_failure
        return decide(entries, self.findings, conditions, stop_on_failure=stop)

    async def conclude(self, fault: tuple[Fault, str] | None = None) -> Verdict:
        """Run what looks at the whole conversation, unless it broke off, and say what it came to.

        Who asked whether the last turn was the last is asked again, now that it is known to be.
        """
        entries = self.prepared.entries
        last = self.turns[-1] if self.turns else Turn(number=1)
        facts = self._facts(last, is_final=True)
        final = [entry for entry in entries if entry.gate == "finally" or entry.key in self.unsure]
        if fault is None and final:
            results = await run_turn(final, facts, models_after_failure=True)
            mark_pending(results)
            found_at_the_end(results)
            self.superseded = [finding for finding in last.results if finding.name in self.unsure]
            last.results = with_later(last.results, results)
        verdict = conclude(entries, self.findings, facts.criteria)
        return verdict if fault is None else _broken_off(verdict, *fault)

    async def result(
        self,
        ended_by: EndedBy | None,
        fault: tuple[Fault, str] | None = None,
        *,
        ended_at: int | None = None,
        traceback: str | None = None,
        message_count: int | None = None,
        thread_id: str | None = None,
        stop_reason: str | None = None,
        simulator_usage: TokensUsage | None = None,
    ) -> RunResult:
        """The finished conversation with its verdict."""
        verdict = await self.conclude(fault)
        usage = {
            "evaluation": _judge_usage(f for found in (*self.findings, self.superseded) for f in found),
            "persona": simulator_usage,
        }
        return RunResult(
            scenario=self.prepared.scenario.name,
            verdict=verdict,
            messages=self.messages,
            turns=self.turns,
            message_count=counted(self.turns) if message_count is None else message_count,
            ended_by=ended_by,
            ended_at=ended_at,
            error=fault[1] if fault else verdict.reason if verdict.outcome == "error" else None,
            traceback=traceback,
            thread_id=thread_id,
            state=self.state,
            stop_reason=stop_reason,
            usage={role: tokens for role, tokens in usage.items() if tokens and tokens.total_tokens},
        )

    def _facts(self, turn: Turn, *, is_final: bool) -> TurnFacts:
        prepared = self.prepared
        return TurnFacts(
            messages=list(self.messages),
            last_invocation=turn.invocation,
            turn=turn.number,
            is_final=is_final,
            scenario=prepared.scenario,
            persona=prepared.persona_info,
            ground_truth=prepared.ground_truth,
            context=prepared.context,
            criteria=prepared.criteria,
            state=self.state,
            invocations=[done.invocation for done in self.turns],
            opening=prepared.opening if len(self.turns) <= 1 else (),
            llm=self.services.llm,
            embedder=self.services.embedder,
            limits=self.services.limits,
            stored_findings=self.stored,
        )


async def judge_conversation(
    prepared: PreparedScenario,
    turns: Sequence[Turn],
    services: Services,
    *,
    fault: tuple[Fault, str] | None = None,
    state: dict[str, Any] | None = None,
    thread_id: str | None = None,
    stored: StoredFindings | None = None,
) -> RunResult:
    """What a scenario's evaluators say about a conversation that exists: nobody else is called.

    Every turn is judged, and the verdict is that over all of them, also where a live run would have ended
    before: ``ended_by`` and ``ended_at`` say why and after which turn. Models are not asked again for what is
    ``stored``.
    """
    judge = ConversationJudge(prepared, services, list(prepared.seeds), stored=stored or {})
    ended: tuple[Decision, int] | None = None
    spoken = 0
    for turn in turns:
        judge.messages += turn.all_messages
        spoken += turn.user_message is not None
        is_last = turn is turns[-1]
        # A script that live runs go through to its end puts off what would end them early.
        conditions = StopConditions(
            script_left=not is_last and spoken < len(prepared.script),
            blocked_by="recording" if is_last else None,
        )
        decision = await judge.judge(turn.model_copy(), conditions)
        if decision.over and ended is None:
            ended = decision, turn.number
    judge.state = state
    by, after = (ended[0].ended_by, ended[1]) if ended and fault is None else (None, 0)
    early = by is not None and after < turns[-1].number
    return await judge.result(by, fault, ended_at=after if early else None, thread_id=thread_id)


def counted(turns: Iterable[Turn]) -> int:
    """How many messages count towards ``maxMessages``: the user's, and replies with text."""
    return sum((turn.user_message is not None) + len(replies_with_text(turn.messages)) for turn in turns)


def replies_with_text(messages: Iterable[Message]) -> list[Message]:
    return [message for message in messages if message.role == "assistant" and text_of(message)]


def _broken_off(verdict: Verdict, fault: Fault, reason: str) -> Verdict:
    """A conversation that broke off is an error, unless something had already failed beyond repair."""
    failures = [f for f in verdict.evaluator_results if f.kind == "assertion" and f.failed]
    mark_pending(failures)
    failure = next((f for f in failures if not f.pending), None)
    if failure is not None:
        return verdict.model_copy(update={"reason": failure.reason or f"{failure.label} failed"})
    error = {"outcome": "error", "fault": fault, "reason": reason, "score": None}
    return verdict.model_copy(update=error)


def _judge_usage(findings: Iterable[Finding]) -> TokensUsage | None:
    """What judges used for these findings; nothing where no model was asked."""
    used = [f.metadata["modelUsage"] for f in findings if "modelUsage" in f.metadata]
    read = [TokensUsage.model_validate(item) for item in used if isinstance(item, dict)]
    return sum(read, TokensUsage()) if read else None
