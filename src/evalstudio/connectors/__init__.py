"""Connectors: the only package that talks to agents."""

BUILTIN_MODULES = ("http", "langgraph", "openai", "python", "replay")
