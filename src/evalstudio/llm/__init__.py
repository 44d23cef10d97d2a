"""The only room that talks to model providers: chat, structured answers, embeddings."""

from __future__ import annotations

from .cache import AnswerCache
from .client import Llm
from .embeddings import LocalEmbedder
from .errors import ModelError
from .settings import LlmSettings, resolve_secret

__all__ = ["AnswerCache", "Llm", "LlmSettings", "LocalEmbedder", "ModelError", "resolve_secret"]
