"""Connectors: the only package that talks to agents. A type's module is imported at first use."""

BUILTIN_TYPES = {
    "http": "http",
    "langgraph": "langgraph",
    "openai": "openai",
    "python": "python",
    "replay": "replay",
}
