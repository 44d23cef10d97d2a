"""``review_conversation``: what a scenario says about a conversation that exists, no project needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from ..base.concurrency import run_sync
from ..base.problems import InvalidInput, Problem
from ..base.redaction import SHORTEST_IN_ANSWERS, Redaction
from ..conversation.definitions import Case, Scenario
from ..conversation.library import chosen_case, open_model, parameters_of, read_definition, secrets_of
from ..conversation.preparation import Services, prepare
from ..conversation.results import RunResult
from ..evaluators.contract import Embedder
from ..llm.embeddings import embedder_of
from ..messages import Message, as_fields
from ..plugins import PluginRegistry, create_registry
from ..recordings.conversation import ConversationBuilder, RecordedConversation
from ..recordings.reading import conversations_in
from .reviewing import judge_recorded, with_conversation, without_secrets

Conversation = RecordedConversation | Sequence[Message | Mapping[str, Any]] | Mapping[str, Any]


async def review_conversation(
    conversation: Conversation,
    scenario: Scenario | Mapping[str, Any],
    *,
    case: Case | Mapping[str, Any] | str | None = None,
    llm: Any = None,
    embedder: Embedder | None = None,
    registry: PluginRegistry | None = None,
) -> RunResult:
    """Judge a conversation that exists by the evaluators of a scenario, as a live run would have been.

    ``conversation`` is a list of messages, a document in any format that ``evalstudio review`` reads, or a
    ``RecordedConversation``. Every turn is judged, and the verdict is that over all of them; ``ended_by`` and
    ``ended_at`` say where a live run would have ended before.
    """
    scenario = read_definition(Scenario, scenario, "scenario")
    recorded = _recorded(conversation)
    async with AsyncExitStack() as stack:
        model = await open_model(llm, None, stack)
        prepared = prepare(
            scenario,
            registry or create_registry(),
            case=chosen_case(scenario, case),
            has_model=model is not None,
            recorded=True,
        )
        redact = Redaction.of(secrets_of(model), shortest=SHORTEST_IN_ANSWERS)
        services = Services(model, embedder or embedder_of(model))
        recorded = without_secrets(recorded, redact)
        return await judge_recorded(with_conversation(prepared, recorded), recorded, services, redact)


@parameters_of(review_conversation)
def review_conversation_sync(*args: Any, **options: Any) -> RunResult:
    """``review_conversation`` from plain code, also where a loop is already running."""
    return run_sync(lambda: review_conversation(*args, **options))


def _recorded(conversation: Conversation) -> RecordedConversation:
    if isinstance(conversation, RecordedConversation):
        return conversation
    if isinstance(conversation, Mapping):
        document: Any = dict(conversation)
    else:
        items: Sequence[object] = conversation
        document = [one.to_json() if isinstance(one, Message) else as_fields(one) or one for one in items]
        if not document:
            return RecordedConversation("conversation", ConversationBuilder().turns)
    read = list(conversations_in([document], "conversation"))
    if len(read) != 1:
        raise InvalidInput(Problem(f"holds {len(read)} conversations; give them one by one"))
    if not isinstance(read[0], RecordedConversation):
        raise InvalidInput(Problem(read[0].reason, ("conversation",)))
    return read[0]
