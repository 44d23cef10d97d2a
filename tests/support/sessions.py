"""Sessions as tests open them, with limits that do not keep one waiting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evalstudio.connectors.connection import CallPolicy
from evalstudio.connectors.contract import (
    ConnectorContext,
    ConnectorDefinition,
    ConnectorSettings,
    ProjectScope,
    RunInfo,
    define_connector,
)
from evalstudio.connectors.http_pool import HttpPool
from evalstudio.connectors.replies import AgentReply
from evalstudio.connectors.session import AgentSession
from evalstudio.messages import Message

QUICK = CallPolicy(timeout_seconds=2.0, backoff_seconds=0.01, connect_seconds=1.0)


def user(text: str) -> Message:
    return Message(role="user", content=text)


def settings_of(
    definition: ConnectorDefinition,
    config: Mapping[str, Any] | None = None,
    *,
    url: str = "",
    headers: Mapping[str, str] | None = None,
    folder: Path | None = None,
    modules: tuple[str, ...] = (),
) -> ConnectorSettings[Any]:
    project = ProjectScope(folder, modules) if folder else None
    return definition.settings(config, url, headers, project)


def session_of(
    definition: ConnectorDefinition,
    pool: HttpPool,
    config: Mapping[str, Any] | None = None,
    *,
    run: RunInfo | None = None,
    extra_headers: Mapping[str, str] | None = None,
    policy: CallPolicy = QUICK,
    **where: Any,
) -> AgentSession:
    return AgentSession(
        definition,
        settings_of(definition, config, **where),
        pool=pool,
        run=run or RunInfo(id="run-1"),
        extra_headers=extra_headers,
        policy=policy,
    )


def connector_of(function: Callable[..., Any], type: str = "mine") -> ConnectorDefinition:
    """A plugin's connector of a function that takes the context."""
    return define_connector(type=type)(function)


async def ask(session: AgentSession, text: str = "Hi") -> AgentReply:
    said = [user(text)]
    return await session.invoke(said, said)


async def talk(session: AgentSession, *texts: str) -> tuple[list[Message], list[AgentReply]]:
    """A whole conversation: each text is sent, its reply added, and so on."""
    messages: list[Message] = []
    replies: list[AgentReply] = []
    for text in texts:
        messages.append(user(text))
        reply = await session.invoke(messages, messages[-1:])
        messages += reply.messages
        replies.append(reply)
    return messages, replies


Context = ConnectorContext[Any]
