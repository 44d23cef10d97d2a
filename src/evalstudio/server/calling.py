"""Calling an agent from a route: the connector's type, and its settings with the secrets opened."""

from __future__ import annotations

from typing import Any

from ..connectors.contract import ConnectorDefinition, ConnectorSettings
from ..project.entities import Connector, Stored, StoredConnector
from ..project.validation import check_connector
from .studio import Studio

_OWN = set(Stored.model_fields)


def line_to(studio: Studio, kept: StoredConnector) -> tuple[ConnectorDefinition, ConnectorSettings[Any]]:
    workspace = studio.workspace
    fields = kept.model_dump(mode="json", by_alias=True, exclude=_OWN)
    connector = Connector.model_validate(workspace.box.open(fields))
    definition, config = check_connector(connector, workspace.registry)
    return definition, ConnectorSettings(config, connector.base_url or "", connector.headers, workspace.scope)
