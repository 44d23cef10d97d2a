"""Connectors: the only room that talks to agents."""

BUILTIN_MODULES = ("http", "langgraph", "openai", "python", "replay")
