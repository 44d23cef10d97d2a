"""Talking to an agent by hand, and what its simulated user is told."""

from __future__ import annotations

from pydantic import Field

from ...messages import Message, TokensUsage
from .base import Shape


class ConnectorTest(Shape):
    """What testing a connector found."""

    success: bool
    latency_ms: float
    response: str | None = Field(default=None, description="What the agent said")
    error: str | None = None


class Invocation(Shape):
    """What to say to the agent."""

    messages: list[Message] = Field(
        min_length=1, max_length=1000, examples=[[{"role": "user", "content": "Hello"}]]
    )


class InvocationResult(Shape):
    """What the agent added."""

    success: bool
    latency_ms: float
    messages: list[Message] = Field(default_factory=list[Message])
    tokens_usage: TokensUsage | None = None
    error: str | None = None


class Prompt(Shape):
    """What the simulated user is told about itself."""

    prompt: str
