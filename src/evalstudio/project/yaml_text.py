"""Definitions written as YAML that every reader takes for the same."""

from __future__ import annotations

import re
from typing import Any

import yaml

from ..base.located import PLAIN

_AWKWARD = re.compile("[\r\x85\u2028\u2029\ufeff]|[ \t]\n|\\A[ \n]")


class _Dumper(yaml.SafeDumper):
    """Quotes whatever this or any other reader of YAML would take for something else than text."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: Any, value: str) -> yaml.Node:
    style = '"' if _AWKWARD.search(value) else "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)


# PyYAML says nothing of the types of its own registries.
_registry: Any = _Dumper
_registry.add_representer(str, _text)
for _kind, _pattern in PLAIN.items():
    _registry.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", _pattern, None)


def to_yaml(data: Any) -> str:
    return yaml.dump(data, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=100)
