"""The page on connectors has the table that every built-in connector's schema gives."""

from __future__ import annotations

import pytest
from tests.support.plugin_files import REPOSITORY

from evalstudio import create_registry
from evalstudio.cli.evaluators import Field, fields_of

PAGE = REPOSITORY / "docs" / "connectors.md"
REGISTRY = create_registry()
TYPES = [item["type"] for item in REGISTRY.list_connector_types()]


def section(name: str) -> str:
    """What the page says about one connector."""
    return PAGE.read_text(encoding="utf-8").partition(f"\n### {name}\n")[2].partition("\n##")[0]


def row(field: Field) -> str:
    default = field.default if field.default in ("", "required") else f"`{field.default}`"
    return f"| `{field.path}` | {field.type} | {default} | {field.description} |"


@pytest.mark.parametrize("name", TYPES)
def test_every_setting_is_told_as_the_schema_has_it(name: str) -> None:
    definition = REGISTRY.get_connector(name)
    assert definition is not None
    wanted = [row(field) for field in fields_of(definition.config.schema)]
    told = [line for line in section(name).splitlines() if line.startswith("| `")]
    assert told == wanted
