"""What scenarios came to in a test, and how a failure is told: the turn, the evaluator and the reason."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.text import counted
from ..conversation.results import RunResult
from ..evaluators.results import Finding, Outcome, with_later
from ..storage.contract import FinishedRun

_WORST_FIRST: tuple[Outcome, ...] = ("fail", "error", "unasserted", "pass")


class ScenarioResult:
    """What all runs of a call came to: every case, persona and repetition. It is true if all passed.

    It knows whether a test has looked at it: a test that calls an agent and asserts nothing must not pass.
    """

    __slots__ = ("_runs", "was_looked_at")

    def __init__(self, runs: Sequence[RunResult]) -> None:
        self._runs = runs
        self.was_looked_at = False

    @property
    def runs(self) -> Sequence[RunResult]:
        """The runs, each with its turns, metrics and findings."""
        self.was_looked_at = True
        return self._runs

    @property
    def passed(self) -> bool:
        """Whether every run passed. One that errored or asserted nothing has not."""
        return bool(self.runs) and all(run.passed for run in self.runs)

    @property
    def outcome(self) -> Outcome:
        """The worst of the runs: fail, error, unasserted, pass."""
        outcomes = {run.outcome for run in self.runs}
        for outcome in _WORST_FIRST:
            if outcome in outcomes:
                return outcome
        return "unasserted"

    @property
    def reason(self) -> str:
        """Why it did not pass, of the first of the worst runs."""
        outcome = self.outcome
        return next((_short(run) for run in self.runs if run.outcome == outcome and not run.passed), "")

    def assert_passed(self) -> None:
        """Raise ``AssertionError`` with everything that did not pass."""
        if not self.passed:
            raise AssertionError(f"\n{self}")

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        # Event loops and debuggers show what they hold; that is nobody who looks.
        was_looked_at, reason = self.was_looked_at, self.reason
        text = f"<{self._counts()}{f': {reason}' if reason else ''}>"
        self.was_looked_at = was_looked_at
        return text

    def __str__(self) -> str:
        return "\n\n".join([self._counts(), *(explained(run) for run in self.runs if not run.passed)])

    def _counts(self) -> str:
        runs = counted(len(self.runs), "run")
        passed = sum(run.passed for run in self.runs)
        return f"{runs}, {passed} passed"


def run_result(finished: FinishedRun, *, repeated: bool = False) -> RunResult:
    """A run as ``run_scenario`` gives it, under the name that tells it from the others."""
    run, ending = finished.run, finished.ending
    turns = [*finished.turns, *([ending.last_turn] if ending.last_turn else [])]
    if turns and ending.final_results:
        turns[-1].results = with_later(turns[-1].results, ending.final_results)
    name = " · ".join(part for part in (run.scenario_name, _case_name(finished), run.persona_name) if part)
    return RunResult(
        scenario=f"{name} · repetition {run.repetition}" if repeated else name,
        verdict=ending.verdict,
        messages=[message for turn in turns for message in turn.all_messages],
        turns=turns,
        message_count=ending.output.get("messageCount", 0),
        ended_by=ending.output.get("endedBy"),
        error=ending.error,
        traceback=ending.output.get("traceback"),
        thread_id=ending.thread_id,
    )


def _case_name(finished: FinishedRun) -> str | None:
    return finished.run.case.get("name") if finished.run.case else None


def explained(run: RunResult) -> str:
    """Why a run did not pass, and below it what was said."""
    causes = "".join(f"\n  {line}" for line in _causes(run))
    transcript = str(run).partition("\n")[2]
    return f"{run.scenario}: {run.outcome}{causes}" + (f"\n\n{transcript}" if transcript else "")


def _short(run: RunResult) -> str:
    return f"{run.scenario}: {next(iter(_causes(run)), run.outcome)}"


def _causes(run: RunResult) -> list[str]:
    if run.outcome == "unasserted":
        return ["nothing was asserted: metrics only measure; add an evaluator that can fail"]
    if run.outcome == "error":
        evaluators = [_cause(one) for one in run.evaluator_results if one.error is not None]
        return evaluators if run.fault in ("evaluator", "judge") and evaluators else [_fault(run)]
    return [_cause(one) for one in _failures(run)] or [run.reason]


def _failures(run: RunResult) -> list[Finding]:
    return [one for one in run.evaluator_results if one.kind == "assertion" and one.failed]


def _cause(finding: Finding) -> str:
    word = "error in" if finding.error is not None else "failed"
    return f'turn {finding.turn}, evaluator "{finding.name}" {word}: {finding.error or finding.reason}'


def _fault(run: RunResult) -> str:
    whose = f", fault of the {run.fault}" if run.fault else ""
    return f"error at turn {len(run.turns) or 1}{whose}: {run.reason}"
