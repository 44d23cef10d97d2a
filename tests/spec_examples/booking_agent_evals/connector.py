"""Connects to the booking agent via its own SDK."""

from __future__ import annotations

from typing import Any

from spec_booking_sdk import BookingAgent

from evalstudio import ConnectorContext, ConnectorError, ConnectorResponse, define_connector

CONFIG: dict[str, Any] = {
    "type": "object",
    "properties": {
        "environment": {
            "type": "string",
            "title": "Environment",
            "enum": ["staging", "production"],
            "default": "staging",
        },
        "region": {
            "type": "string",
            "title": "Region",
            "enum": ["eu-west-1", "us-east-1"],
            "default": "eu-west-1",
        },
    },
    "required": ["environment"],
}


def agent_of(ctx: ConnectorContext[dict[str, Any]]) -> BookingAgent:
    return BookingAgent(
        base_url=ctx.connector.base_url,
        environment=ctx.config["environment"],
        region=ctx.config["region"],
        api_key=ctx.connector.headers.get("x-api-key"),
    )


@define_connector(type="booking-agent", label="Booking Agent", config=CONFIG)
async def booking_agent(ctx: ConnectorContext[dict[str, Any]]) -> ConnectorResponse:
    """Connects to the Booking Agent via its native SDK."""
    response = await agent_of(ctx).chat(ctx.messages, ctx.run.thread_id)
    return ConnectorResponse([{"role": "assistant", "content": response.text}])


@booking_agent.test
async def booking_agent_health(ctx: ConnectorContext[dict[str, Any]]) -> str:
    health = await agent_of(ctx).health_check()
    if not health.ok:
        raise ConnectorError(health.error or "not healthy")
    return f"Agent v{health.version} healthy"
