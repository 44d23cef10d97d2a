"""Checks what the agent claims against the calendar: no pattern and no judge could know."""

from __future__ import annotations

from typing import Literal

from booking_sdk import SLOT, BookingAPI
from pydantic import BaseModel, Field

from evalstudio import EvaluationResult, EvaluatorContext, define_evaluator


class AvailabilityConfig(BaseModel):
    environment: Literal["staging", "production"] = Field("staging", description="Which calendar to ask")


@define_evaluator(label="Availability Check")
async def availability_check(ctx: EvaluatorContext[AvailabilityConfig]) -> EvaluationResult:
    """Every slot the agent calls available is free in the calendar."""
    claims = SLOT.findall(ctx.response) if "available" in ctx.response.lower() else []
    if not claims:
        return EvaluationResult.skip("no slot was offered")
    calendar = BookingAPI(ctx.config.environment)
    wrong = [f"{date} {time}" for date, time in claims if not await calendar.is_free(date, time)]
    value = 1 - len(wrong) / len(claims)
    if wrong:
        return EvaluationResult.failed(f"not free: {', '.join(wrong)}", value=value, wrong=wrong)
    return EvaluationResult.passed(f"{len(claims)} offered, all free", value=value)
