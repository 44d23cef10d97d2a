"""A client for the local model server, and the shapes the tests of this room ask for."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field
from tests.support.model_server import ModelServer

from evalstudio.llm import Llm, LlmSettings
from evalstudio.messages import Message

KEY = "sk-very-secret-0123456789"


class Verdict(BaseModel):
    """Whether the goal was met."""

    reasoning: str
    met: bool
    confidence: float = Field(1.0, ge=0, le=1)


MET = {"reasoning": "It did.", "met": True, "confidence": 0.9}
UNMET = {"reasoning": "It did not.", "met": False, "confidence": 0.8}
WAS_MET = Verdict.model_validate(MET)

ASKED = [
    Message(role="system", content="You judge."),
    Message(role="user", content="Was it booked?"),
    Message(role="assistant", content="Which one?"),
    Message(role="user", content="The second."),
]


def settings_for(server: ModelServer, provider: str = "openai", **changes: Any) -> LlmSettings:
    speaks_openai = provider not in ("anthropic", "google")
    return LlmSettings.model_validate(
        {
            "provider": provider,
            "apiKey": KEY,
            "baseUrl": server.url if speaks_openai else server.root,
            "models": {"evaluation": "gpt-4o", "persona": "gpt-4o-mini"},
            **changes,
        }
    )


def open_llm(server: ModelServer, provider: str = "openai", **changes: Any) -> Llm:
    return Llm(settings_for(server, provider, **changes))
