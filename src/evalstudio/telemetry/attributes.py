"""Values as they are sent: without secrets, bounded, and always such that they can be encoded.

One text or number that the encoder refuses would lose the whole batch it is in.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..base.json_text import json_text
from ..base.lazy_dataclass import dataclass
from ..base.redaction import Redaction
from ..base.text import cut
from . import names

if TYPE_CHECKING:
    from ..messages import Message
    from . import EvaluatorFinding, RunFacts

Value = str | bool | int | float
Attributes = dict[str, Value]

CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
LONGEST_NAME = 200
LONGEST_TEXT = 2_000
_LONGEST_CONTENT = 16_000
_MOST_CONTENT = 100_000
_LARGEST_INTEGER = 2**63 - 1
_ON_SPANS = frozenset({"span_only", "span_and_event", "true", "1"})
_IN_EVENTS = frozenset({"event_only", "span_and_event"})
_NOWHERE = frozenset({"", "no_content", "false", "0"})


@dataclass(frozen=True, slots=True)
class Capture:
    """Where the texts of messages go, if anywhere; ``problem`` is what is wrong with what was asked for."""

    on_spans: bool = False
    in_events: bool = False
    problem: str = ""


def capture_asked_for() -> Capture:
    """What the environment asks for, in the words of OpenTelemetry; ``true`` is its older word."""
    word = os.environ.get(CONTENT_VARIABLE, "").strip().lower()
    if word not in _ON_SPANS | _IN_EVENTS | _NOWHERE:
        known = "SPAN_ONLY, EVENT_ONLY, SPAN_AND_EVENT or NO_CONTENT"
        shown = cut(word, 40)
        return Capture(problem=f'{CONTENT_VARIABLE} is "{shown}", not {known}: no message text is sent')
    return Capture(word in _ON_SPANS, word in _IN_EVENTS)


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Makes attributes of what may hold anything at all."""

    redact: Redaction

    def text(self, value: str, most: int = LONGEST_TEXT) -> str:
        # Redacted before it is cut, or half a secret would be left at the end.
        return cut(self.redact(value).encode(errors="replace").decode(), most)

    def __call__(self, values: Mapping[str, object]) -> Attributes:
        """The attributes that have a value; the others are left out."""
        pairs = ((name, self._value(value)) for name, value in values.items())
        return {name: value for name, value in pairs if value is not None}

    def _value(self, value: object) -> Value | None:
        if isinstance(value, str):
            return self.text(value) if value else None
        if isinstance(value, bool):
            return value
        if isinstance(value, int):
            return value if -_LARGEST_INTEGER <= value <= _LARGEST_INTEGER else None
        return value if isinstance(value, float) and math.isfinite(value) else None

    def messages(self, messages: Sequence[Message]) -> str:
        """Messages in the shape of the conventions, as JSON; the oldest are left out where it is too much."""
        told: list[str] = []
        size = 0
        for message in reversed(messages):
            text = json_text({"role": message.role, "parts": self._parts(message)})
            size += len(text)
            if size > _MOST_CONTENT:
                break
            told.append(text)
        return f"[{','.join(reversed(told))}]"

    def _parts(self, message: Message) -> list[dict[str, Any]]:
        text = self.text(message.text, _LONGEST_CONTENT)
        if message.role == "tool":
            call = self.text(message.tool_call_id or "", LONGEST_NAME)
            return [{"type": "tool_call_response", "id": call, "response": text}]
        parts: list[dict[str, Any]] = [{"type": "text", "content": text}] if text else []
        for call in message.tool_calls or ():
            part = {"id": call.id or "", "name": call.name}
            named = {key: self.text(str(value), LONGEST_NAME) for key, value in part.items()}
            parts.append(
                {
                    "type": "tool_call",
                    **named,
                    "arguments": self.text(call.function.arguments, _LONGEST_CONTENT),
                }
            )
        return parts


def run_attributes(facts: RunFacts) -> dict[str, object]:
    return {
        names.EXECUTION_ID: facts.execution_id,
        names.EVAL_ID: facts.eval_id,
        names.RUN_ID: facts.run_id,
        names.RUN_ATTEMPT: facts.attempt,
        names.RUN_REPETITION: facts.repetition,
        names.SCENARIO: facts.scenario,
        names.CASE: facts.case,
        names.PERSONA: facts.persona,
        names.CONNECTOR: facts.connector,
    }


def evaluation_attributes(finding: EvaluatorFinding, *, explained: bool) -> dict[str, object]:
    """A finding in the words of the conventions. An error has no score: it neither holds nor fails."""
    criterion = finding.criterion_name
    # Several criteria of one evaluator are several evaluations.
    several = criterion is not None and criterion != finding.name
    return {
        names.EVALUATION_NAME: f"{finding.name}/{criterion}" if several else finding.name,
        names.SCORE_VALUE: finding.value if finding.error is None else None,
        names.SCORE_LABEL: finding.word,
        names.EXPLANATION: finding.reason if explained else None,
        names.ERROR_TYPE: None if finding.error is None else f"{finding.fault or 'evaluator'}_error",
        names.EVALUATOR_TYPE: finding.type,
        names.EVALUATOR_KIND: finding.kind,
        names.EVALUATOR_GATE: finding.gate,
        names.CRITERION: criterion,
        names.RULE: finding.rule,
        names.TURN: finding.turn,
    }
