"""The only package that talks to model providers: chat, structured answers, embeddings."""

from __future__ import annotations

from .cache import AnswerCache
from .client import Llm
from .embeddings import LocalEmbedder
from .settings import LlmSettings, ModelError, resolve_secret

__all__ = ["AnswerCache", "Llm", "LlmSettings", "LocalEmbedder", "ModelError", "resolve_secret"]
