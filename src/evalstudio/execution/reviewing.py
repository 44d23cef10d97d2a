"""Reviewing: the evaluators of a scenario over a conversation that exists, as the turn loop would apply them.

Files, stored runs and production traces come in as ``RecordedConversation`` and leave as finished runs.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from ..base.console import PrintLog
from ..base.json_text import json_once
from ..base.lazy_dataclass import dataclass
from ..base.problems import InvalidInput, Problem
from ..base.redaction import SHORTEST_IN_ANSWERS, Redaction
from ..base.times import iso
from ..connectors.contract import ConnectorError
from ..connectors.replies import AgentReply
from ..connectors.secrets import redact_reply, redacted_data
from ..conversation.definitions import Case, Scenario
from ..conversation.judging import judge_conversation
from ..conversation.preparation import PreparedScenario, Services, prepare
from ..conversation.results import RunResult
from ..evaluators.builtin.tool_usage import tool_usage
from ..evaluators.contract import Fault
from ..evaluators.definition import Entry, with_keys
from ..evaluators.results import RecordingInfo, Turn
from ..llm.usage import counting_usage, model_usage
from ..messages import UnreadableMessage, is_blank, read_call, type_of
from ..plugins import PluginRegistry
from ..project.entities import Execution, Stored, name_key, new_id
from ..project.validation import cases_of
from ..recordings.conversation import RecordedConversation
from ..storage.contract import FinishedRun, NewRun, Snapshot
from ..telemetry import RunFacts, traced
from .run_worker import ending_of
from .workspace import Workspace

EXPECTED_CALLS = "expected-calls"
_RECORDED = "recorded"


@dataclass(slots=True)
class ReviewedScenario:
    """A scenario that looks at recorded conversations, prepared once for each of its cases."""

    scenario: Scenario
    registry: PluginRegistry
    has_model: bool
    cases: Mapping[str, Case] = field(default_factory=dict[str, Case])
    _prepared: dict[str | None, PreparedScenario] = field(default_factory=dict[str | None, PreparedScenario])
    _snapshot: Snapshot | None = None

    @classmethod
    def of(cls, workspace: Workspace, scenario: Scenario) -> ReviewedScenario:
        """The scenario with the cases it names, as a project has it."""
        return cls(scenario, workspace.registry, workspace.has_model, named_cases(scenario, workspace.folder))

    @property
    def id(self) -> str | None:
        return self.scenario.id if isinstance(self.scenario, Stored) else None

    @property
    def snapshot(self) -> Snapshot:
        """The scenario as it is now. Cases are rows of their own, as in a live run."""
        if self._snapshot is None:
            self._snapshot = scenario_snapshot(self.scenario)
        return self._snapshot

    def case_of(self, conversation: RecordedConversation) -> Case:
        """The case a conversation is of: that of the scenario with its name, with the conversation's own
        reference over it."""
        name = conversation.task_id or conversation.id
        known = self.cases.get(name) or Case()
        truth = conversation.ground_truth if conversation.ground_truth is not None else known.ground_truth
        return known.model_copy(update={"name": name, "ground_truth": truth})

    def prepared_for(self, conversation: RecordedConversation) -> PreparedScenario:
        """What is to be looked at in this conversation."""
        name = conversation.task_id or conversation.id
        case = self.cases.get(name)
        key = None if case is None else name
        if key not in self._prepared:
            self._prepared[key] = prepare(
                self.scenario, self.registry, case=case, has_model=self.has_model, recorded=True
            )
        return with_conversation(self._prepared[key], conversation)


def scenario_snapshot(scenario: Scenario) -> Snapshot:
    exclude = {*Stored.model_fields, "cases"}
    return Snapshot.of(scenario.model_dump(mode="json", by_alias=True, exclude=exclude))


def named_cases(scenario: Scenario, folder: Path) -> dict[str, Case]:
    """The cases of a scenario by the names they have in runs."""
    cases = cases_of(scenario, folder)
    return {case.name or f"case {number}": case for number, case in enumerate(cases, 1)}


def with_conversation(prepared: PreparedScenario, conversation: RecordedConversation) -> PreparedScenario:
    """A prepared scenario with what a conversation brings along: what was said before it, its reference and
    the calls that are expected in it."""
    truth = prepared.ground_truth if conversation.ground_truth is None else conversation.ground_truth
    own = () if conversation.is_live else conversation.seeds
    opening = [message.text for message in own if message.role == "assistant"]
    prepared = replace(prepared, seeds=list(conversation.seeds), ground_truth=truth, opening=opening)
    if not conversation.expected_calls:
        return prepared
    own = _expected_calls(conversation.expected_calls, {entry.name for entry in prepared.entries})
    return replace(
        prepared,
        entries=with_keys([*prepared.entries, own]),
        context={**prepared.context, "expectedCalls": conversation.expected_calls},
    )


def _expected_calls(calls: Sequence[Mapping[str, Any]], names: set[str | None]) -> Entry:
    """The calls that a conversation must hold, each with its arguments at least, as a check."""
    rules = [call_rule(call, number) for number, call in enumerate(calls)]
    return tool_usage.use({"rules": rules}, name=None if EXPECTED_CALLS in names else EXPECTED_CALLS)


def call_rule(call: Mapping[str, Any], number: int) -> dict[str, Any]:
    """A call in whatever shape calls are read in, as a rule; ``kwargs`` are arguments too."""
    place, fields = ("expectedCalls", number), dict(call)
    if "kwargs" in fields:
        fields.setdefault("arguments", fields.pop("kwargs"))
    try:
        function = read_call(fields, type_of(fields))["function"]
        arguments = function["arguments"]
        arguments = json_once(arguments or "null") if isinstance(arguments, str) else arguments
    except UnreadableMessage as error:
        raise InvalidInput(Problem(f"is no call; it needs a name: {error}", place)) from None
    except ValueError as error:
        raise InvalidInput(Problem(f"the arguments are no JSON: {error}", place)) from None
    if not isinstance(arguments, dict | None):
        raise InvalidInput(Problem("is no call; it needs arguments by their names", place))
    if arguments is None and (unread := _unread_object(fields)):
        raise InvalidInput(Problem(f'"{unread}" is not read; the arguments stand under arguments', place))
    return {"tool": function["name"], "required": True, "arguments": arguments}


def _unread_object(call: Mapping[str, Any]) -> str | None:
    """What may be meant as the arguments of a call that has none: they would not be compared."""
    inner: object = call.get("function")
    fields = cast(Mapping[str, Any], inner) if isinstance(inner, Mapping) else call
    return next((name for name, item in fields.items() if isinstance(item, dict) and item), None)


def fault_of(conversation: RecordedConversation) -> tuple[Fault, str] | None:
    """Why a conversation cannot pass, whatever its evaluators say: the agent broke off or said nothing."""
    if conversation.error is not None:
        return "agent", f"the agent broke off: {conversation.error or 'the recording does not say why'}"
    if not conversation.turns:
        return "agent", "the recording holds no message of a user that the agent could have answered"
    for turn in conversation.turns:
        own = [message for message in turn.messages if message.role == "assistant"]
        if not own:
            return "agent", f"the agent did not answer the user's message of turn {turn.number}"
        if all(is_blank(message.text) and not message.tool_calls for message in own):
            return "agent", f"the answer of turn {turn.number} holds neither text nor a tool call"
    return None


async def judge_recorded(
    prepared: PreparedScenario,
    conversation: RecordedConversation,
    services: Services,
    redact: Redaction | None = None,
) -> RunResult:
    """What a prepared scenario says about a recorded conversation; its turns come along, answered or not."""
    redact = redact or Redaction()
    with _hidden_secrets_refused():
        turns = [_recorded_turn(turn, redact) for turn in conversation.turns]
        state = redacted_data(conversation.state, redact, ("state",), [])
    answered = [turn for turn in turns if any(message.role == "assistant" for message in turn.messages)]
    result = await judge_conversation(
        prepared,
        answered,
        services,
        fault=fault_of(conversation),
        state=state,
        thread_id=conversation.id,
    )
    judged = {turn.number: turn for turn in result.turns}
    result.turns = [judged.get(turn.number, turn) for turn in turns]
    return result


def without_secrets(conversation: RecordedConversation, redact: Redaction) -> RecordedConversation:
    """A conversation without secrets in what it brings beside its answers, which are looked through later."""
    if not redact:
        return conversation
    with _hidden_secrets_refused():
        return _redacted(conversation, redact)


class HiddenFromView(InvalidInput):
    """A part of a conversation that cannot be looked through for secrets."""


@contextmanager
def _hidden_secrets_refused() -> Generator[None]:
    """What cannot be looked through for secrets is not reviewed: it would be shown to judges and stored."""
    try:
        yield
    except ConnectorError as error:
        raise HiddenFromView(str(error)) from None


def _redacted(conversation: RecordedConversation, redact: Redaction) -> RecordedConversation:
    asked = [turn.user_message for turn in conversation.turns if turn.user_message is not None]
    beside = AgentReply([*conversation.seeds, *asked], 0.0, metadata=dict(conversation.metadata))
    redact_reply(beside, redact)
    count = len(conversation.seeds)
    questions = iter(beside.messages[count:])
    turns = [
        turn if turn.user_message is None else turn.model_copy(update={"user_message": next(questions)})
        for turn in conversation.turns
    ]
    if turns and (leaked := _leaked_in_opening(conversation, redact)):
        turns[0] = turns[0].model_copy(update={"redacted": [*(turns[0].redacted or ()), *leaked]})
    return replace(
        conversation,
        turns=turns,
        seeds=beside.messages[:count],
        metadata=beside.metadata,
        error=conversation.error and redact(conversation.error),
        tools=redacted_data(conversation.tools, redact, ("tools",), []),
    )


def _leaked_in_opening(conversation: RecordedConversation, redact: Redaction) -> list[str]:
    """Where the agent gave secrets away before the first question: the first turn answers for it."""
    own = () if conversation.is_live else conversation.seeds
    opening = AgentReply([message for message in own if message.role == "assistant"], 0.0)
    redact_reply(opening, redact)
    return [f"opening {place}" for place in opening.redacted or ()]


def _recorded_turn(turn: Turn, redact: Redaction) -> Turn:
    """A turn as evaluators and the database may see it: without secrets, and timed only if somebody did.

    Clocks of whole seconds say 0 of an answer that took some time.
    """
    reply = AgentReply(turn.messages, 0.0, metadata=turn.metadata or {})
    redact_reply(reply, redact)
    return turn.model_copy(
        update={
            "messages": reply.messages,
            "metadata": reply.metadata or None,
            "redacted": _all_places(turn.redacted, reply.redacted),
            "latency_ms": turn.latency_ms or None,
            "results": [],
        }
    )


def _all_places(before: list[str] | None, now: list[str] | None) -> list[str] | None:
    """Where secrets stood, as far as anybody looked."""
    if before is None or now is None:
        return now if before is None else before
    return list(dict.fromkeys([*before, *now]))


@lru_cache(maxsize=8)
def _redaction(secrets: frozenset[str]) -> Redaction:
    return Redaction.of(secrets, shortest=SHORTEST_IN_ANSWERS)


async def review_one(
    workspace: Workspace,
    scenario: ReviewedScenario | Scenario,
    conversation: RecordedConversation,
    *,
    repetition: int = 1,
    run_id: str | None = None,
    execution: Execution | None = None,
) -> FinishedRun:
    """A recorded conversation as a finished run of a scenario, ready to be stored in an execution.

    Prepare the scenario once (``ReviewedScenario.of``) where there are many conversations. What is wrong with
    the scenario or with what the conversation brings along is raised as ``InvalidInput``.
    """
    if not isinstance(scenario, ReviewedScenario):
        scenario = ReviewedScenario.of(workspace, scenario)
    redact = _redaction(workspace.secrets)
    conversation = without_secrets(conversation, redact)
    prepared = scenario.prepared_for(conversation)
    log, run_id = PrintLog(), run_id or new_id()
    facts = RunFacts(
        run_id=run_id,
        execution_id=None if execution is None else execution.id,
        eval_id=None if execution is None else execution.eval_id,
        scenario=scenario.scenario.name,
        case=conversation.task_id or conversation.id,
        connector=conversation.agent,
        repetition=repetition,
        recorded=True,
    )
    judging = judge_recorded(prepared, conversation, workspace.services(), redact)
    with log.capturing(), counting_usage() as usage:
        result = await traced(workspace.telemetry, facts, judging)
    ending = ending_of(result, Turn(number=1), 0, ())
    output: dict[str, Any] = {**ending.output, "recording": recording_info(conversation)}
    if printed := log.text():
        output["log"] = redact(printed)
    seeds = [Turn(number=0, messages=conversation.seeds)] if conversation.seeds else []
    agent = conversation.agent or _RECORDED
    run = NewRun(
        scenario=scenario.snapshot,
        connector=Snapshot.of({"name": agent, "type": _RECORDED}),
        scenario_id=scenario.id,
        scenario_name=scenario.scenario.name,
        connector_id=None if conversation.agent is None else _agent_id(conversation.agent),
        connector_name=conversation.agent,
        case=scenario.case_of(conversation).model_dump(mode="json", by_alias=True, exclude_none=True),
        repetition=repetition,
        id=run_id,
    )
    ending = replace(ending, output=output, last_turn=None, **model_usage(usage, result.all_findings))
    return FinishedRun(run, [*seeds, *result.turns], ending)


def _agent_id(name: str) -> str:
    """What tells the agents of recordings apart, as the id of a connector tells those of live runs."""
    return f"agent-{Snapshot.of({'agent': name_key(name)}).hash[:20]}"


def recording_info(conversation: RecordedConversation) -> RecordingInfo:
    """Where a conversation came from and what came along, as the run's output keeps it."""
    started = conversation.started
    fields: dict[str, Any] = {
        "id": conversation.id,
        "origin": conversation.origin or None,
        "taskId": conversation.task_id,
        "trial": conversation.trial,
        "agent": conversation.agent,
        "startedAt": iso(started) if started is not None else None,
        "tags": [*conversation.tags] or None,
        "expectedCalls": conversation.expected_calls,
        "tools": conversation.tools or None,
        "metadata": dict(conversation.metadata) or None,
        "error": conversation.error,
    }
    return RecordingInfo(**{key: item for key, item in fields.items() if item is not None})
