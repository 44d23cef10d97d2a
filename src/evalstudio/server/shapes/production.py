"""Conversations of production as the API shows them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ...project.alarms import ConversationReview
from ...project.entities import Moment
from ...storage.production import Status
from .base import PageOf, Shape


class ConversationSummary(Shape):
    """A conversation in short. What is told of its content is known once it has been complete."""

    id: str
    name: str = Field(description="What the sender calls it, or its trace")
    status: Status = Field(description="open while it may go on; complete when it has been quiet")
    revision: int = Field(description="Counts how often it was opened again")
    judged: bool = Field(description="Whether this revision was handed over to the monitors")
    problem: str | None = Field(description="Why handing over failed the last time")
    spans: int
    late_spans: int = Field(description="Those that came when it was complete already")
    refused_spans: int = Field(description="Those that were too many; such a conversation is an error")
    created_at: Moment
    updated_at: Moment
    started_at: Moment | None
    turn_count: int | None
    total_tokens: int | None
    agent: str | None
    title: str | None = Field(description="The beginning of the first message of the user")
    error: str | None = Field(description="Why the agent broke off, or why the telemetry is not whole")
    attributes: dict[str, Any]
    reviews: list[ConversationReview] = Field(description="By each monitor that has judged it")


class ConversationTurn(Shape):
    """What the user said and what the agent did."""

    number: int
    user_message: dict[str, Any] | None
    messages: list[dict[str, Any]]
    latency_ms: float | None
    tokens_usage: dict[str, int] | None


class ConversationDetail(ConversationSummary):
    """A conversation with all that was said."""

    seeds: list[dict[str, Any]] = Field(description="System prompts and what came before the first turn")
    turns: list[ConversationTurn]
    tools: list[dict[str, Any]]
    traces: list[str]


class ConversationPage(PageOf[ConversationSummary]):
    """Conversations in short, newest first."""
