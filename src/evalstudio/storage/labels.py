"""Executions by their labels: a document of any keys, in either database."""

from __future__ import annotations

from typing import Any, cast

from sqlalchemy import ColumnElement, Text, literal
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from .columns import Plain
from .schema import executions


class _LabelText(FunctionElement[str]):
    """The value of a label as text, whatever characters its key has."""

    inherit_cache = True
    type = Text()


@compiles(_LabelText, "sqlite")
def _label_in_sqlite(element: _LabelText, compiler: Any, **more: Any) -> str:  # pyright: ignore[reportUnusedFunction] - SQLAlchemy calls it
    document, key = (compiler.process(part, **more) for part in element.clauses)
    text = "CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE CAST(value AS TEXT) END"
    readable = f"CASE WHEN json_valid({document}) THEN {document} ELSE '{{}}' END"
    return f"(SELECT {text} FROM json_each({readable}) WHERE key = {key})"


@compiles(_LabelText, "postgresql")
def _label_in_postgres(element: _LabelText, compiler: Any, **more: Any) -> str:  # pyright: ignore[reportUnusedFunction] - SQLAlchemy calls it
    document, key = (compiler.process(part, **more) for part in element.clauses)
    # PostgreSQL cannot take such a character out of JSON; a label that has one must not break the others.
    readable = f"position('\\u0000' in {document}) = 0"
    return f"CASE WHEN {readable} THEN CAST({document} AS json) ->> CAST({key} AS text) END"


def labelled(label: str) -> ColumnElement[bool]:
    """Executions with this ``key=value`` among their labels, or with any value of this ``key``."""
    key, has_value, value = label.partition("=")
    text: ColumnElement[str] = cast(Any, _LabelText(executions.c.labels, literal(key, Plain())))
    return text == literal(value, Plain()) if has_value else text.is_not(None)
