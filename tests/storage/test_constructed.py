"""What is read from rows many at a time has every field that the entity has."""

from __future__ import annotations

from evalstudio.base.constructed import constructed
from evalstudio.evaluators.results import Turn
from evalstudio.messages import Message
from evalstudio.project.entities import RunSummary, Subject
from evalstudio.storage.rows import _SAME_IN_RUNS  # pyright: ignore[reportPrivateUsage]


def test_a_run_made_from_its_row_has_every_field_of_one_that_was_checked() -> None:
    times = {"created_at", "updated_at", "started_at", "completed_at"}
    assert {*_SAME_IN_RUNS, *times, "result"} == set(RunSummary.model_fields)


def test_a_model_made_unchecked_is_as_good_as_a_checked_one() -> None:
    checked = RunSummary(execution_id="x", scenario_id="s", scenario_name="Refund", case_name="case 1")
    made = constructed(RunSummary, dict(checked))
    assert (made, made.model_dump_json()) == (checked, checked.model_dump_json())
    assert made.model_copy(update={"attempt": 2}).attempt == 2
    assert Subject.of(checked) == Subject.model_validate(Subject.of(checked).model_dump())
    assert Subject.of(checked) == Subject.of(made)
    assert Subject.of(made).key == Subject.key_of(checked)


def test_a_turn_of_parts_that_were_read_is_one_that_was_checked() -> None:
    message = Message(role="user", content="Hello")
    made, checked = Turn.of(1, user_message=message), Turn(number=1, user_message=message)
    assert set(made.__dict__) == set(Turn.model_fields)
    assert (made, repr(made), made.to_json()) == (checked, repr(checked), checked.to_json())
    assert made.model_dump_json(by_alias=True) == checked.model_dump_json(by_alias=True)
