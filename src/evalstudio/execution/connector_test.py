"""Testing a connector of a project: is the agent there, and how long does it take."""

from __future__ import annotations

from ..connectors.connection import CallPolicy
from ..connectors.contract import ConnectorSettings
from ..connectors.session import ConnectorCheck, test_connector
from ..project.entities import Connector, Stored
from ..project.validation import check_connector
from .definitions import find, load_project_state
from .workspace import Workspace

_OWN = set(Stored.model_fields)


async def probe(workspace: Workspace, name: str) -> ConnectorCheck:
    """Call the agent behind a connector once, without trying again."""
    project_state = await load_project_state(workspace.store)
    kept = project_state.entity(find(project_state, "connector", name).key)
    fields = kept.model_dump(by_alias=True, exclude=_OWN)
    box = workspace.definition_context().box
    connector = Connector.model_validate(box.open(fields) if box else fields)
    definition, config = check_connector(connector, workspace.registry)
    settings = ConnectorSettings(config, connector.base_url or "", connector.headers, workspace.scope)
    return await test_connector(definition, settings, pool=workspace.http, policy=CallPolicy(retries=0))
