"""Shared by the tests of conversations: the real LangGraph server, started once when it is wanted."""

from __future__ import annotations

from tests.support.langgraph_server import langgraph_url as langgraph_url
