"""Statements run on the driver: what they store and refuse is what SQLAlchemy's would."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    bindparam,
    create_engine,
    insert,
    or_,
    select,
    update,
)

from evalstudio.storage.columns import Id, Json, Plain
from evalstudio.storage.prepared import Prepared, insert_rows
from evalstudio.storage.transaction import Transaction

things = Table(
    "things",
    MetaData(),
    Column("id", Id, primary_key=True),
    Column("name", Plain),
    Column("size", Integer),
    Column("good", Boolean),
    Column("body", Json),
)
ODD = [
    {
        "id": "a",
        "name": "nul \x00 and half \ud800",
        "size": 1,
        "good": True,
        "body": {"ö": [1.5, float("nan")]},
    },
    {"id": "b", "name": None, "size": None, "good": None, "body": None},
    {"id": "c", "name": "ünï", "size": -(2**62), "good": False, "body": {"big": 2**70, "set": {1}}},
]


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.begin() as opened:
        things.metadata.create_all(opened)
        yield opened


def raw(unit: Transaction) -> list[Any]:
    return unit.driver.execute("SELECT * FROM things ORDER BY id").fetchall()


def test_rows_are_stored_as_sqlalchemy_stores_them(connection: Connection):
    unit = Transaction(connection)
    insert_rows(unit, things, ODD)
    ours = raw(unit)
    unit.driver.execute("DELETE FROM things")
    connection.execute(insert(things), ODD)
    assert ours == raw(unit)
    assert len(ours) == len(ODD)


def test_a_statement_takes_its_values_by_name_and_keeps_its_own(connection: Connection):
    unit = Transaction(connection)
    insert_rows(unit, things, ODD)
    wanted = or_(bindparam("anybody", type_=Boolean), things.c.id == bindparam("which"))
    renamed = Prepared(
        update(things)
        .where(things.c.good.is_(True), wanted)
        .values(name=bindparam("title"), size=None)
        .returning(things.c.id, things.c.name)
    )
    assert renamed.first_row(unit, {"anybody": False, "which": "b", "title": "x"}) is None
    assert renamed.first_row(unit, {"anybody": True, "which": "b", "title": "x\x00"}) == ("a", "x\ufffd")
    found = Prepared(select(things.c.size).where(things.c.id == bindparam("which")))
    assert found.first_row(unit, {"which": "a"}) == (None,)


def test_what_the_database_refuses_is_the_drivers_error(connection: Connection):
    unit = Transaction(connection)
    with pytest.raises(sqlite3.IntegrityError):
        insert_rows(unit, things, [ODD[0], ODD[0]])


def test_a_value_that_is_not_given_is_an_error_and_not_nothing(connection: Connection):
    unit = Transaction(connection)
    with pytest.raises(KeyError, match="name"):
        insert_rows(unit, things, [ODD[0], {"id": "d"}])
    with pytest.raises(KeyError, match="which"):
        Prepared(select(things.c.size).where(things.c.id == bindparam("which"))).first_row(unit, {})
