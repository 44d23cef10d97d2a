"""Calling the agent behind a connector once: is it there, and what does it answer."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from ..connectors.connection import CallPolicy
from ..connectors.contract import ConnectorDefinition, ConnectorSettings, RunInfo
from ..connectors.session import AgentSession, ConnectorCheck, test_connector
from ..project.entities import Connector, Stored, StoredConnector
from ..project.validation import check_connector
from .workspace import Workspace

# Somebody waits for it: the first answer counts.
_POLICY = CallPolicy(retries=0, timeout_seconds=30.0, total_seconds=30.0)


async def check_agent(workspace: Workspace, connector: StoredConnector) -> ConnectorCheck:
    """Whether the agent is there and answers."""
    definition, settings = _agent(workspace, connector)
    return await test_connector(definition, settings, pool=workspace.http, policy=_POLICY)


def agent_session(workspace: Workspace, connector: StoredConnector) -> AgentSession:
    """A conversation with the agent outside of any run."""
    definition, settings = _agent(workspace, connector)
    run = RunInfo(id=f"invoke-{uuid4().hex[:12]}")
    return AgentSession(definition, settings, pool=workspace.http, run=run, policy=_POLICY)


def _agent(
    workspace: Workspace, stored: StoredConnector
) -> tuple[ConnectorDefinition, ConnectorSettings[Any]]:
    fields = stored.model_dump(mode="json", by_alias=True, exclude=set(Stored.model_fields))
    connector = Connector.model_validate(workspace.box.open(fields))
    definition, config = check_connector(connector, workspace.registry)
    return definition, ConnectorSettings(config, connector.base_url or "", connector.headers, workspace.scope)
