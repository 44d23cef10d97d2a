"""Whether definitions can be used with what is registered here, before anything is kept or run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..configs import InvalidConfig, closest
from ..connectors.contract import ConnectorDefinition
from ..conversation.definitions import Case, Persona, Scenario
from ..conversation.preparation import InvalidScenario, prepare
from ..plugins import PluginRegistry
from .cases import cases_of
from .entities import Connector
from .secrets import SecretError, check_address, check_references


class InvalidDefinition(ValueError):
    """A definition that cannot be used; the message names the field."""


def check_scenario(
    scenario: Scenario,
    registry: PluginRegistry,
    folder: Path,
    *,
    personas: list[Persona] | None = None,
    has_model: bool,
) -> list[Case]:
    """The scenario's cases, all of which can be prepared with every persona."""
    cases = cases_of(scenario, folder)
    for case in cases or [None]:
        for persona in personas or [None]:
            try:
                prepare(scenario, registry, case=case, persona=persona, has_model=has_model)
            except InvalidScenario as error:
                where = f'case "{case.name}": ' if case is not None and case.name else ""
                raise InvalidDefinition(f"{where}{error}".lstrip(".")) from None
    return cases


def check_connector(connector: Connector, registry: PluginRegistry) -> tuple[ConnectorDefinition, Any]:
    """The connector's type and its parsed config."""
    definition = registry.get_connector(connector.type)
    if definition is None:
        known = [item["type"] for item in registry.list_connector_types()]
        hint = closest(connector.type, known) or f"; there are {', '.join(known)}"
        raise InvalidDefinition(f'type: no connector type is called "{connector.type}"{hint}')
    try:
        check_address(connector.base_url)
        check_references({"baseUrl": connector.base_url, "headers": connector.headers})
    except SecretError as error:
        raise InvalidDefinition(str(error)) from None
    try:
        config = definition.config.parse(connector.type, connector.config)
    except InvalidConfig as error:
        path, message = error.problems[0]
        raise InvalidDefinition(f"config{'.' if path else ''}{path}: {message}") from None
    if definition.needs_address and not (connector.base_url or "").strip():
        raise InvalidDefinition(f"baseUrl: a connector of type {connector.type} needs the agent's address")
    return definition, config
