"""Personas, scenarios, connectors and evals in the store."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from evalstudio.base.times import now
from evalstudio.evaluators.definition import define_evaluator
from evalstudio.project.entities import StoredConnector, StoredEval, StoredPersona, StoredScenario
from evalstudio.storage.contract import DefinitionWrite, Filters, IdempotencyKey
from evalstudio.storage.errors import (
    InUse,
    InvalidCursor,
    KeyReused,
    NameTaken,
    NotFound,
    StorageError,
    UnknownReference,
    VersionConflict,
)
from evalstudio.storage.store import SqlStore


def scenario(name: str = "Booking", **more: Any) -> StoredScenario:
    return StoredScenario.model_validate(
        {"name": name, "script": ["hi"], "successCriteria": "greets", **more}
    )


def connector(name: str = "Agent") -> StoredConnector:
    return StoredConnector(name=name, type="http", headers={"authorization": "${TOKEN}"})


UGLY = [
    "plain",
    "Ünïcödé 🚀 \u202eright to left",
    "quotes \" and \\ and ' and % and _",
    "'; DROP TABLE personas; --",
    "a\x00b",
    "half \ud800 pair",
    "x" * 100_000,
    "line\nbreak\ttab",
    "\u200b\ufeff.",
]


@pytest.mark.parametrize("text", UGLY, ids=range(len(UGLY)))
async def test_what_is_written_is_read_back_whatever_is_in_it(store: SqlStore, text: str) -> None:
    persona = StoredPersona(name=text, description=text, headers={"k": text})
    await store.create(persona)
    read = await store.get("persona", persona.id)
    found = await store.find("persona", text)
    assert read == found
    assert isinstance(read, StoredPersona)
    expected = text.replace("\ud800", "\ufffd")
    assert read.description == expected
    assert (await store.list_of("persona", Filters(text=text[:50]))).items == [read]


async def test_a_scenario_keeps_everything_it_says(store: SqlStore) -> None:
    persona = await store.create(StoredPersona(name="Ada"))
    made = scenario(
        personaIds=[persona.id],
        messages=[{"role": "user", "content": "before", "extra": [1, {"deep": None}]}],
        cases=[{"name": "one", "vars": {"n": 1.5, "big": 2**60}}],
        evaluators=[{"type": "regex", "config": {"pattern": "a|b"}, "gate": "finally"}],
        criteria=[{"name": "kind", "description": "d", "scale": "likert5"}],
        groundTruth={"a": [1, 2]},
        tags=["smoke"],
    )
    await store.create(made)
    read = await store.get("scenario", made.id)
    own = {"created_at", "updated_at", "version"}
    assert read.model_dump(exclude=own) == made.model_dump(exclude=own)


async def test_names_are_unique_per_kind_whatever_their_case_and_composition(store: SqlStore) -> None:
    await store.create(StoredPersona(name="Café"))
    with pytest.raises(NameTaken, match='already a persona named "Café"'):
        await store.create(StoredPersona(name="CAFE\u0301"))
    await store.create(connector("Café"))
    other = await store.create(StoredPersona(name="Other"))
    with pytest.raises(NameTaken):
        await store.update(other.model_copy(update={"name": "café"}))
    await store.update((await store.find("persona", "café") or other).model_copy(update={"name": "CAFÉ"}))


async def test_ten_creations_of_one_name_at_once_leave_one(store: SqlStore) -> None:
    made = await asyncio.gather(
        *(store.create(StoredPersona(name="Ada")) for _ in range(10)), return_exceptions=True
    )
    assert sum(isinstance(one, NameTaken) for one in made) == 9
    assert len((await store.list_of("persona")).items) == 1


async def test_an_update_against_an_old_version_is_refused(store: SqlStore) -> None:
    made = await store.create(StoredPersona(name="Ada"))
    changed = await store.update(made.model_copy(update={"description": "new"}), expected=1)
    assert (changed.version, changed.created_at) == (2, made.created_at)
    with pytest.raises(VersionConflict, match="changed in the meantime"):
        await store.update(made.model_copy(update={"description": "other"}), expected=1)
    with pytest.raises(VersionConflict):
        await store.delete("persona", made.id, expected=1)
    await store.delete("persona", made.id, expected=2)
    with pytest.raises(NotFound):
        await store.get("persona", made.id)


async def test_of_many_updates_at_once_against_one_version_one_wins(store: SqlStore) -> None:
    made = await store.create(StoredPersona(name="Ada"))
    tries = [store.update(made.model_copy(update={"description": f"try {n}"}), expected=1) for n in range(10)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(one, VersionConflict) for one in results) == 9
    assert (await store.get("persona", made.id)).version == 2


async def test_writing_the_same_again_changes_nothing(store: SqlStore) -> None:
    made = await store.create(scenario(tags=["a"]))
    assert await store.update(made) == made


async def test_references_must_exist_and_keep_what_they_name_from_being_deleted(store: SqlStore) -> None:
    one, agent = await store.create(scenario()), await store.create(connector())
    with pytest.raises(UnknownReference, match='connectorIds: there is no connector "nope"'):
        await store.create(StoredEval(name="E", scenario_ids=[one.id], connector_ids=["nope"]))
    with pytest.raises(UnknownReference):
        await store.create(scenario("other", personaIds=["\x00'\"%"]))
    made = await store.create(StoredEval(name="Nightly", scenario_ids=[one.id], connector_ids=[agent.id]))
    for kind, wanted in (("scenario", one.id), ("connector", agent.id)):
        with pytest.raises(InUse, match='used by "Nightly"'):
            await store.delete(kind, wanted)  # pyright: ignore[reportArgumentType]
    await store.delete("eval", made.id)
    await store.delete("scenario", one.id)


async def test_a_set_of_changes_is_made_whole_or_not_at_all(store: SqlStore) -> None:
    one, agent = scenario(), connector()
    nightly = StoredEval(name="Nightly", scenario_ids=[one.id], connector_ids=[agent.id])
    good = [
        DefinitionWrite("scenario", one),
        DefinitionWrite("connector", agent),
        DefinitionWrite("eval", nightly),
    ]
    bad = DefinitionWrite("eval", StoredEval(name="Bad", scenario_ids=["x"], connector_ids=[agent.id]))
    with pytest.raises(UnknownReference):
        await store.apply([*good, bad])
    assert (await store.list_of("scenario")).items == []
    await store.apply(good)
    before = await store.get("eval", nightly.id)
    await store.apply(good)
    assert await store.get("eval", nightly.id) == before
    await store.apply(
        [DefinitionWrite("eval", delete=nightly.id), DefinitionWrite("scenario", delete=one.id)]
    )
    assert (await store.list_of("eval")).items == []


@pytest.mark.parametrize("wanted", ["", "nope", "\x00", "x" * 10_000, "'; --", "\ud800"])
async def test_what_is_not_there_is_said_to_be_missing(store: SqlStore, wanted: str) -> None:
    with pytest.raises(NotFound):
        await store.get("scenario", wanted)
    with pytest.raises(NotFound):
        await store.delete("persona", wanted)
    assert await store.find("eval", wanted) is None


async def test_the_same_id_twice_is_refused(store: SqlStore) -> None:
    made = await store.create(StoredPersona(name="Ada"))
    with pytest.raises(StorageError, match="already a persona with the id"):
        await store.create(StoredPersona(id=made.id, name="Else"))


async def test_a_scenario_with_evaluators_in_code_cannot_be_kept(store: SqlStore) -> None:
    @define_evaluator(label="Greeting")
    def greets(ctx: object) -> bool:
        return True

    with pytest.raises(StorageError, match="only exist in code"):
        await store.create(StoredScenario.model_validate({"name": "S", "evaluators": [greets]}))


async def test_lists_are_narrowed_by_text_tags_and_time(store: SqlStore) -> None:
    start = now()
    await store.create(scenario("Booking 100%", tags=["Smoke", 'a"b']))
    await store.create(scenario("Cancelling", tags=["smoke"]))
    await store.create(scenario("other", tags=["smoker"]))

    async def names(**filters: Any) -> list[str]:
        return [one.name for one in (await store.list_of("scenario", Filters(**filters))).items]

    assert await names() == ["other", "Cancelling", "Booking 100%"]
    assert await names(text="BOOK") == ["Booking 100%"]
    assert await names(text="100%") == ["Booking 100%"]
    assert await names(text="_") == []
    assert await names(tags=["SMOKE"]) == ["Cancelling", "Booking 100%"]
    assert await names(tags=["smoke", 'a"b']) == ["Booking 100%"]
    assert await names(since=start) == ["other", "Cancelling", "Booking 100%"]
    assert await names(until=start - timedelta(minutes=1)) == []


async def test_paging_neither_repeats_nor_skips_while_others_insert(store: SqlStore) -> None:
    for number in range(25):
        await store.create(StoredPersona(name=f"p{number}"))
    seen: list[str] = []
    cursor: str | None = None
    for step in range(100):
        page = await store.list_of("persona", cursor=cursor, limit=4)
        seen += [one.name for one in page.items]
        await store.create(StoredPersona(name=f"later {step}"))
        if (cursor := page.cursor) is None:
            break
    assert seen == [f"p{number}" for number in reversed(range(25))]


@pytest.mark.parametrize("cursor", ["", "!", "a b", "////", "AA\x00", "💥", "AAAA" * 1000, "_____"])
async def test_a_made_up_cursor_is_refused(store: SqlStore, cursor: str) -> None:
    with pytest.raises(InvalidCursor):
        await store.list_of("persona", cursor=cursor)


@pytest.mark.parametrize("limit", [0, -1, 1001])
async def test_a_page_has_a_sensible_size(store: SqlStore, limit: int) -> None:
    with pytest.raises(ValueError, match="limit"):
        await store.list_of("persona", limit=limit)


async def test_a_request_made_twice_with_one_key_is_carried_out_once(store: SqlStore) -> None:
    once = IdempotencyKey("key \x00 1", "fingerprint")
    tries = await asyncio.gather(*(store.create(StoredPersona(name="Ada"), once=once) for _ in range(5)))
    assert len({one.id for one in tries}) == 1
    with pytest.raises(KeyReused):
        await store.create(StoredPersona(name="Bob"), once=IdempotencyKey("key \x00 1", "other"))
