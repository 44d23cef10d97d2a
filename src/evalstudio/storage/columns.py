"""Column types that mean the same on both databases."""

from __future__ import annotations

import hashlib
from typing import Any

from sqlalchemy import BigInteger, Column, Dialect, Integer, String, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from .json_text import clean_text, dumps, loads

Key = BigInteger().with_variant(Integer(), "sqlite")


class Id(TypeDecorator[str]):
    """A short text that is looked up and ordered, byte by byte on both databases."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        return String(collation="C") if dialect.name == "postgresql" else String()

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else clean_text(value)


class Plain(TypeDecorator[str]):
    """Text as people and agents write it; what no database takes is replaced."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else clean_text(value)


class Json(TypeDecorator[Any]):
    """A document as JSON text, the same bytes on both databases."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else dumps(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return None if value is None else loads(value)


def moment(name: str, **options: Any) -> Column[int]:
    """A moment as milliseconds since 1970, UTC."""
    return Column(name, BigInteger, **options)


def short_key(text: str) -> str:
    """A text short enough for any index; of a long one its beginning and a hash."""
    return (
        text if len(text) <= 200 else f"{text[:150]}…{hashlib.sha256(clean_text(text).encode()).hexdigest()}"
    )
