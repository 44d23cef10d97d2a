"""Rows of a dataset as records: field mapping, the record's id, and whether it is in the sample."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, cast

import orjson
from pydantic import ValidationError

from ..base.json_text import UnclearJson, json_kind, json_once, why_not_json
from ..base.lazy_dataclass import dataclass
from ..base.paths import MISSING, lookup
from ..base.problems import problems_of
from ..evaluators.contract import Embedder, LanguageModel, TurnFacts
from ..evaluators.criteria import EvaluationCriteria
from ..evaluators.limits import DEFAULT_LIMITS, EvaluatorLimits
from ..evaluators.records import EvaluationInput, RecordFacts, facts_of

_FIELDS = {field.alias or name for name, field in EvaluationInput.model_fields.items()}
_NESTED = frozenset({"context", "agentConfig", "messageHistory", "metadata", "tokensUsage", "criteria"})
_TEXT, _OBJECT = (str, type(None)), (dict, type(None))
# A row with only these needs no further reading: the common cases, kept off the slow path.
_TEXTS = frozenset({"id", "prompt", "response", "groundTruth"})
_PLAIN = _TEXTS | {"context", "metadata", "sessionId", "agentId"}


class UnusableRow(ValueError):
    """A row that is not a record."""


@dataclass(slots=True)
class Record:
    """One row, ready to be scored."""

    id: str
    line: int
    facts: TurnFacts
    agent_id: str | None = None
    session_id: str | None = None
    agent_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class RowReader:
    """Turns rows into records."""

    criteria: Sequence[EvaluationCriteria]
    fields: Mapping[str, str]
    llm: LanguageModel | None = None
    embedder: Embedder | None = None
    limits: EvaluatorLimits = DEFAULT_LIMITS
    _shared: TurnFacts = field(init=False)

    def __post_init__(self) -> None:
        shared = TurnFacts(
            is_final=True,
            criteria=self.criteria,
            llm=self.llm,
            embedder=self.embedder,
            limits=self.limits,
        )
        object.__setattr__(self, "_shared", shared)

    def parse(self, line: int, text: bytes) -> dict[str, Any]:
        try:
            row = json_once(text)
        except orjson.JSONDecodeError as error:
            raise UnusableRow(why_not_json(text, error)) from None
        except UnclearJson as error:
            raise UnusableRow(f"is {error}") from None
        if not isinstance(row, dict):
            raise UnusableRow(f"is a JSON {json_kind(row)}, not an object")
        return self._mapped(cast(dict[str, Any], row)) if self.fields else cast(dict[str, Any], row)

    def _mapped(self, row: dict[str, Any]) -> dict[str, Any]:
        """Every target from its path; columns that are not mapped keep their own names."""
        mapped = dict(row)
        for target, path in self.fields.items():
            _place(mapped, target, lookup(row, path))
        return mapped

    def record(self, line: int, row: dict[str, Any]) -> Record:
        get = row.get
        own_id, response = get("id"), get("response")
        record_id = own_id if type(own_id) is str else str(line if own_id is None else own_id)
        if response is None:
            raise UnusableRow(f'has no "{self.fields.get("response", "response")}" field to score')
        if isinstance(response, str) and _TEXTS.issuperset(row) and type(get("prompt")) in _TEXT:
            facts = RecordFacts(self._shared, response, get("prompt"), get("groundTruth"), {}, {})
            return Record(record_id, line, facts)
        if isinstance(response, str) and _PLAIN.issuperset(row):
            prompt, context, metadata = get("prompt"), get("context"), get("metadata")
            agent_id, session_id = get("agentId"), get("sessionId")
            are_texts = type(prompt) in _TEXT and type(agent_id) in _TEXT and type(session_id) in _TEXT
            if are_texts and type(context) in _OBJECT and type(metadata) in _OBJECT:
                truth = get("groundTruth")
                facts = RecordFacts(self._shared, response, prompt, truth, context or {}, metadata or {})
                return Record(record_id, line, facts, agent_id, session_id)
        return self._checked(record_id, line, row)

    def _checked(self, record_id: str, line: int, row: dict[str, Any]) -> Record:
        known = {name: _nested(name, row[name]) for name in _FIELDS if name in row and name != "id"}
        beside = {name: item for name, item in row.items() if name not in _FIELDS}
        if beside:
            metadata = known.get("metadata")
            known["metadata"] = {**beside, **cast(Mapping[str, Any], metadata or {})}
        try:
            source = EvaluationInput.model_validate(known)
        except ValidationError as error:
            raise UnusableRow(str(problems_of(error, known)[0])) from None
        criteria = source.criteria or self.criteria
        facts = facts_of(source, criteria, llm=self.llm, embedder=self.embedder, limits=self.limits)
        tokens = None if source.tokens_usage is None else source.tokens_usage.total_tokens
        return Record(record_id, line, facts, source.agent_id, source.session_id, tokens)


def _nested(name: str, value: Any) -> Any:
    """A table's cell may hold JSON where a record holds an object or a list."""
    if name in _NESTED and isinstance(value, str):
        try:
            return json_once(value)
        except orjson.JSONDecodeError:
            return value
        except UnclearJson as error:
            raise UnusableRow(f"{name} is {error}") from None
    return value


def _place(row: dict[str, Any], target: str, value: Any) -> None:
    """Put a value where its target says. What is mapped comes from its path or is not there at all."""
    head, _, rest = target.partition(".")
    if rest:
        inner = row.get(head)
        row[head] = dict(cast(dict[str, Any], inner)) if isinstance(inner, dict) else {}
        _place(row[head], rest, value)
    elif value is MISSING:
        row.pop(head, None)
    else:
        row[head] = value


def in_sample(record_id: str, share: float, seed: str) -> bool:
    """Whether a record is in the sample: decided by its id alone, so always the same."""
    digest = hashlib.blake2b(f"{seed}\0{record_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 < share
