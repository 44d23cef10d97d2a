"""Types of columns that mean the same on both databases."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
from sqlalchemy import BigInteger, Column, Dialect, Integer, String, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from ..base.json_text import clean_text, json_text
from .errors import DamagedRow

Key = BigInteger().with_variant(Integer(), "sqlite")


class Plain(TypeDecorator[str]):
    """Text as people and agents write it; what no database takes is replaced."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else clean_text(value)


class Id(Plain):
    """A short text that is looked up and ordered, byte by byte on both databases."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        return String(collation="C") if dialect.name == "postgresql" else String()


class Json(TypeDecorator[Any]):
    """A document as JSON text, the same bytes on both databases."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else json_text(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return None if value is None else read_document(value)


def read_document(text: str) -> Any:
    """A stored document."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise DamagedRow(
            f"A stored document is damaged ({error}). Restore the database from a backup."
        ) from None


def moment(name: str, **options: Any) -> Column[int]:
    """A moment as milliseconds since 1970, UTC."""
    return Column(name, BigInteger, **options)


def short_key(text: str) -> str:
    """A text short enough for any index; of a long one its beginning and a hash."""
    if len(text) <= 200:
        return text
    return f"{text[:150]}…{hashlib.sha256(clean_text(text).encode()).hexdigest()}"
