"""Calling the agent behind a connector once: is it there, and what does it answer."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from ..connectors.connection import CallPolicy
from ..connectors.contract import RunInfo
from ..connectors.session import AgentSession, ConnectorCheck, test_connector
from ..project.documents import check_stored
from ..project.entities import Stored, StoredConnector
from .workspace import Workspace

# Somebody waits for it: the first answer counts.
_POLICY = CallPolicy(attempts=1, timeout_seconds=30.0, total_seconds=30.0)


async def check_agent(workspace: Workspace, connector: StoredConnector) -> ConnectorCheck:
    """Whether the agent is there and answers."""
    definition, settings = workspace.agent_settings(_fields(connector))
    return await test_connector(
        definition, settings, pool=workspace.http, policy=_POLICY, secrets=workspace.secrets
    )


def agent_session(workspace: Workspace, connector: StoredConnector) -> AgentSession:
    """A conversation with the agent outside of any run."""
    definition, settings = workspace.agent_settings(_fields(connector))
    run = RunInfo(id=f"invoke-{uuid4().hex[:12]}")
    return AgentSession(
        definition, settings, pool=workspace.http, run=run, policy=_POLICY, secrets=workspace.secrets
    )


def _fields(connector: StoredConnector) -> dict[str, Any]:
    check_stored(connector)
    return connector.model_dump(mode="json", by_alias=True, exclude=set(Stored.model_fields))
