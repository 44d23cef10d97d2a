"""What the config file says of production: whether telemetry comes in, and what is kept of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from ..base.functions import FUNCTION_NAME
from ..base.personal_data import KNOWN, USUAL, PersonalData, compile_redaction
from ..configs import StrictConfig

KnownPattern = Literal["email", "card", "iban", "phone", "ip"]


class OwnPattern(StrictConfig):
    """Something else that must not be stored."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,30}$")] = Field(
        description="What stands in its place, in brackets"
    )
    pattern: Annotated[str, Field(min_length=1, max_length=2_000)]

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        if compile_redaction(pattern).search("") is not None:
            raise ValueError("the pattern matches everywhere, also where nothing is")
        return pattern

    @field_validator("name")
    @classmethod
    def _is_new(cls, name: str) -> str:
        if name in KNOWN:
            raise ValueError(f'"{name}" is a known pattern; choose another name')
        return name


class RedactionSettings(StrictConfig):
    """What is taken out before anything is stored."""

    patterns: list[KnownPattern | OwnPattern] = Field(
        default=list(USUAL), description="Names of known patterns, and patterns of your own with a name"
    )
    hook: Annotated[str, Field(pattern=FUNCTION_NAME)] | None = Field(
        default=None, description="module:function, called with each span; returns it changed, or None"
    )

    def personal_data(self) -> PersonalData:
        named = [one for one in self.patterns if isinstance(one, str)]
        own = {one.name: one.pattern for one in self.patterns if isinstance(one, OwnPattern)}
        return PersonalData.of(named, own)


class IntakeLimits(StrictConfig):
    """How much is taken."""

    request_bytes: int = Field(default=20_000_000, ge=1_000, description="Unpacked")
    request_spans: int = Field(default=10_000, ge=1)
    span_bytes: int = Field(default=2_000_000, ge=1_000)
    conversation_spans: int = Field(default=10_000, ge=1)
    conversation_bytes: int = Field(default=64_000_000, ge=1_000)


class ProductionSettings(StrictConfig):
    """Telemetry of agents in production."""

    enabled: bool = Field(default=False, description="Whether the server takes OTLP")
    token: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, repr=False, description="What senders show, as Authorization: Bearer …"
    )
    quiet_seconds: float = Field(
        default=60.0, gt=0, description="A conversation to which nothing has come for so long is complete"
    )
    retention_days: float = Field(
        default=30.0, gt=0, description="What nothing has come to for so long is deleted"
    )
    redact: RedactionSettings = RedactionSettings()
    limits: IntakeLimits = IntakeLimits()

    @model_validator(mode="after")
    def _needs_a_token(self) -> ProductionSettings:
        if self.enabled and self.token is None:
            raise ValueError("enabled needs a token, such as ${EVALSTUDIO_INTAKE_TOKEN}")
        return self
