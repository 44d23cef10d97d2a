"""Ids, names and the shapes of what a project keeps."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalstudio.base.times import iso, now
from evalstudio.evaluators.definition import define_evaluator
from evalstudio.project.entities import (
    Connector,
    Eval,
    Execution,
    Run,
    RunSummary,
    StoredConnector,
    StoredEval,
    StoredPersona,
    StoredScenario,
    id_floor,
    name_key,
    new_id,
)


def test_ids_are_short_unique_and_sort_in_the_order_they_were_made() -> None:
    ids = [new_id() for _ in range(20_000)]
    assert len(set(ids)) == len(ids)
    assert ids == sorted(ids)
    assert {len(one) for one in ids} == {21}
    assert all(one.isalnum() and one == one.lower() for one in ids)


def test_ids_made_in_many_threads_at_once_never_collide() -> None:
    made: list[list[str]] = [[] for _ in range(8)]

    def make(place: int) -> None:
        made[place] += [new_id() for _ in range(2000)]

    threads = [threading.Thread(target=make, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one for ids in made for one in ids}) == 16_000


def test_the_floor_of_a_moment_separates_ids_made_before_and_after_it() -> None:
    before = new_id()
    moment = now() + timedelta(milliseconds=5)
    assert before < id_floor(moment)
    assert id_floor(now() - timedelta(seconds=1)) < before
    assert id_floor(datetime(1960, 1, 1, tzinfo=UTC)) < before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Booking", "bOOKING"),
        (" Booking ", "Booking"),
        ("Café", "Cafe\u0301"),
        ("STRASSE", "straße"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
    ],
)
def test_names_that_read_the_same_are_the_same_name(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


@given(st.text())
def test_a_names_key_is_stable(name: str) -> None:
    assert name_key(name_key(name)) == name_key(name)


def test_names_that_differ_stay_apart() -> None:
    assert name_key("Booking 1") != name_key("Booking 2")
    assert name_key("ﬁ") == name_key("fi")


def test_times_are_utc_whatever_they_were_given_in() -> None:
    tokyo = datetime(2024, 5, 1, 9, 0, tzinfo=timezone(timedelta(hours=9)))
    assert iso(tokyo) == "2024-05-01T00:00:00.000Z"
    made = Execution.model_validate({"createdAt": "2024-05-01T09:00:00+09:00"})
    assert made.model_dump(mode="json", by_alias=True)["createdAt"] == "2024-05-01T00:00:00.000Z"
    assert Execution(created_at=datetime(2024, 5, 1)).created_at.tzinfo is UTC


def test_an_eval_accepts_one_connector_or_several() -> None:
    assert Eval.model_validate({"name": "x", "scenarioIds": ["s"], "connectorId": "c"}).connector_ids == ["c"]
    several = Eval.model_validate({"name": "x", "scenarioIds": ["s"], "connectorIds": ["c", "d"]})
    assert several.connector_ids == ["c", "d"]
    assert several.repetitions is None


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"connectorId": "c", "connectorIds": ["d"]}, "not both"),
        ({"connectorIds": ["c", "c"]}, '"c" twice'),
        ({"connectorIds": []}, "connectorIds"),
        ({}, "connectorIds"),
        ({"connectorId": "c", "scenarioIds": []}, "scenarioIds"),
        ({"connectorId": "c", "repetitions": 0}, "repetitions"),
        ({"connectorId": "c", "surprise": 1}, "surprise"),
        ({"connectorId": "c", "name": "  "}, "blank"),
    ],
)
def test_an_eval_that_cannot_be_run_is_refused(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Eval.model_validate({"name": "x", "scenarioIds": ["s"], **wrong})


def test_a_connector_needs_a_name_and_a_type() -> None:
    made = Connector.model_validate(
        {"name": "A", "type": "http", "baseUrl": "http://x", "headers": {"a": "b"}}
    )
    assert made.base_url == "http://x"
    with pytest.raises(ValidationError):
        Connector.model_validate({"name": "A"})


@pytest.mark.parametrize(
    "entity",
    [
        StoredPersona(name="Ada", headers={"x-user": "ada"}),
        StoredScenario.model_validate(
            {"name": "S", "script": ["hi"], "successCriteria": "greets", "tags": ["a"]}
        ),
        StoredConnector(name="C", type="http"),
        StoredEval(name="E", scenario_ids=["s"], connector_ids=["c"]),
        Execution(labels={"branch": "main"}),
        RunSummary(execution_id="x"),
        Run(execution_id="x", output={"messageCount": 1}),
    ],
)
def test_every_entity_has_an_id_and_times_and_survives_json(entity: StoredPersona) -> None:
    shown = entity.model_dump(mode="json", by_alias=True)
    assert {"id", "createdAt", "updatedAt"} <= shown.keys()
    assert type(entity).model_validate_json(entity.model_dump_json(by_alias=True)) == entity


def test_a_scenario_with_evaluators_in_code_is_still_an_entity() -> None:
    @define_evaluator(label="Greeting")
    def greets(ctx: object) -> bool:
        return True

    assert StoredScenario.model_validate({"name": "S", "evaluators": [greets]}).evaluators
