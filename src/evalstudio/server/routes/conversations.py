"""``/api/conversations``: what came in from production."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from fastapi import Query

from ...base.json_text import json_bytes
from ...execution.intake import read_conversation
from ...storage.contract import Filters
from ...storage.production import Status
from ..api_router import ApiRouter
from ..errors import refusals
from ..middleware import JsonRoute
from ..requests import PagingDep, PeriodDep, StudioDep
from ..shapes.base import Identity, Text
from ..shapes.production import ConversationDetail, ConversationPage, ConversationSummary, ConversationTurn

router = ApiRouter(prefix="/conversations", tags=["production"], route_class=JsonRoute)


@router.get("", operation_id="listConversations")
async def list_conversations(
    studio: StudioDep,
    paging: PagingDep,
    period: PeriodDep,
    text: Annotated[
        Text | None, Query(description="In its id, the first words of the user or the agent's name")
    ] = None,
    status: Status | None = None,
    agent: Annotated[Text | None, Query(description="The name of the agent or of its service")] = None,
    failed: Annotated[
        bool | None, Query(description="Only those with an error, or only those without")
    ] = None,
) -> ConversationPage:
    """Conversations of production in short, newest first."""
    filters = Filters(status=status, agent_id=agent, text=text, **period)
    page = await studio.store.conversations(filters, failed=failed, **paging)
    items = [ConversationSummary.model_validate(item) for item in page.items]
    return ConversationPage.model_construct(items=items, cursor=page.cursor)


@router.get("/{id}", operation_id="getConversation", responses=refusals(404))
async def get(studio: StudioDep, id: Identity) -> ConversationDetail:
    """A conversation with all that was said, as its spans tell it now."""
    summary = await studio.store.conversation(id)
    assembled = await read_conversation(
        studio.workspace, summary["id"], summary["name"], summary["refusedSpans"]
    )
    conversation = assembled.conversation
    turns = [
        ConversationTurn(
            number=turn.number,
            user_message=_plain(turn.user_message.to_json()) if turn.user_message is not None else None,
            messages=[_plain(message.to_json()) for message in turn.messages],
            latency_ms=turn.latency_ms,
            tokens_usage=turn.tokens_usage.model_dump() if turn.tokens_usage is not None else None,
        )
        for turn in conversation.turns
    ]
    fields = ConversationSummary.model_validate(summary).model_dump()
    fields |= {
        "error": conversation.error,
        "attributes": _plain(assembled.attributes),
        "turn_count": len(turns),
    }
    return ConversationDetail(
        **fields,
        seeds=[_plain(message.to_json()) for message in conversation.seeds],
        turns=turns,
        tools=_plain(conversation.tools),
        traces=conversation.metadata["traces"],
    )


def _plain(value: object) -> Any:
    """As storage writes it: what is nested without end is cut, where answering would fail."""
    return orjson.loads(json_bytes(value))
