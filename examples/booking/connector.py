"""Reaches the booking agent through its own SDK instead of HTTP."""

from __future__ import annotations

from typing import Literal

from booking_sdk import BookingAgent
from pydantic import BaseModel, Field

from evalstudio import ConnectorContext, ConnectorError, ConnectorResponse, define_connector


class BookingConfig(BaseModel):
    environment: Literal["staging", "production"] = Field("staging", description="Which calendar to book in")
    region: Literal["eu-west-1", "us-east-1"] = "eu-west-1"


# One agent per environment and region, so that a conversation keeps its session between turns.
_agents: dict[tuple[str, str], BookingAgent] = {}


def _agent(ctx: ConnectorContext[BookingConfig]) -> BookingAgent:
    config = ctx.config
    key = (config.environment, config.region)
    if key not in _agents:
        _agents[key] = BookingAgent(config.environment, config.region, ctx.headers.get("x-api-key"))
    return _agents[key]


@define_connector(type="booking-agent", label="Booking Agent")
async def booking_agent(ctx: ConnectorContext[BookingConfig]) -> ConnectorResponse:
    """Talks to the booking agent through its SDK."""
    if not ctx.new_messages:
        raise ConnectorError("the booking agent needs a message to answer")
    reply = await _agent(ctx).chat(ctx.new_messages[-1].text, session=ctx.run.id)
    return ConnectorResponse(
        messages=[{"role": "assistant", "content": reply.text}],
        tokens_usage={"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens},
    )


@booking_agent.test
async def booking_agent_health(ctx: ConnectorContext[BookingConfig]) -> str:
    return f"Booking agent {await _agent(ctx).version()} is up"


@booking_agent.state
async def booking_agent_state(ctx: ConnectorContext[BookingConfig]) -> dict[str, object]:
    return {"booked": _agent(ctx).booked.get(ctx.run.id, [])}
