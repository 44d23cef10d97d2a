"""Verifies what the agent claims to be available against the real booking system."""

from __future__ import annotations

import re

from pydantic import BaseModel, Field
from spec_booking_sdk import BookingAPI

from evalstudio import EvaluationResult, EvaluatorContext, define_evaluator

SLOT = re.compile(r"available.*?(\d{4}-\d{2}-\d{2}).*?(\d{2}:\d{2})", re.IGNORECASE)


class Availability(BaseModel):
    api_url: str = Field(
        alias="apiUrl", title="Booking API URL", description="Base URL for the availability API"
    )


@define_evaluator(type="availability-check", label="Availability Check")
async def availability_check(ctx: EvaluatorContext[Availability]) -> EvaluationResult:
    """Availability claims in the agent's response match the real booking system."""
    claims = SLOT.findall(ctx.response)
    if not claims:
        return EvaluationResult.passed("No availability claims found")
    api = BookingAPI(ctx.config.api_url)
    wrong = [f"{date} {time}" for date, time in claims if not await api.check_slot(date, time)]
    if wrong:
        return EvaluationResult(
            success=False,
            value=1 - len(wrong) / len(claims),
            reason=f"Agent claimed availability for slots that are not available: {', '.join(wrong)}",
            metadata={"claimsChecked": len(claims), "incorrectSlots": wrong},
        )
    return EvaluationResult.passed(f"All {len(claims)} availability claims verified", value=1)
