"""Connectors: the only room that talks to agents."""
