"""What counts as true or false: a bool, and nothing that only looks like one."""

from __future__ import annotations


def read_bool(value: object) -> bool | None:
    """True or false as such, numpy's too; nothing for ``"false"``, 0 and the like."""
    if isinstance(value, bool):
        return value
    kind = type(value)
    return bool(value) if kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_") else None
