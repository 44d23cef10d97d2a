"""The only package that talks to model providers: chat, structured answers, embeddings.

Each name is imported on first use: a project file is read by every command, a model called by few.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cache import AnswerCache
    from .client import Llm
    from .embeddings import LocalEmbedder
    from .settings import LlmSettings, ModelError, resolve_secret

_MODULES = {
    "AnswerCache": "cache",
    "Llm": "client",
    "LocalEmbedder": "embeddings",
    "LlmSettings": "settings",
    "ModelError": "settings",
    "resolve_secret": "settings",
}

__all__ = ["AnswerCache", "Llm", "LlmSettings", "LocalEmbedder", "ModelError", "resolve_secret"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
