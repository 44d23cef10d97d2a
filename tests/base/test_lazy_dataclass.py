"""A dataclass whose methods are written on first use is the one that the standard library makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any

import pytest

from evalstudio.base.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """Where something is."""

    x: int
    y: int = 0
    tags: tuple[str, ...] = field(default=(), compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class StandardPoint:
    """Where something is."""

    x: int
    y: int = 0
    tags: tuple[str, ...] = field(default=(), compare=False)


@dataclass(slots=True)
class Basket:
    """Things, and how many there were at first."""

    things: list[str] = field(default_factory=list[str])
    at_first: int = field(init=False)

    def __post_init__(self) -> None:
        self.at_first = len(self.things)


@dataclass(slots=True)
class NamedBasket(Basket):
    name: str = "basket"

    def __repr__(self) -> str:
        return self.name


@dataclass(slots=True, eq=False)
class Unequal:
    x: int


@dataclass(frozen=True, slots=True)
class Plane(Point):
    z: int = 0


def test_no_method_is_written_before_it_is_used() -> None:
    @dataclass(frozen=True, slots=True)
    class Unused:
        x: int

    assert not inspect.isfunction(Unused.__dict__["__init__"])
    assert Unused(1) == Unused(1)
    assert inspect.isfunction(Unused.__dict__["__init__"])
    assert not inspect.isfunction(Unused.__dict__["__repr__"])


@dataclass(frozen=True)
class Order:
    """Every kind of field."""

    number: int
    lines: list[str] = field(default_factory=list[str])
    note: str = field(default="none", kw_only=True)
    total: float = field(kw_only=True)
    state: str = field(default="open", init=False)
    marks: dict[str, int] = field(default_factory=dict[str, int], init=False, repr=False)


StandardOrder: Any = dataclasses.make_dataclass(
    "Order", [(one.name, one.type, copy.copy(one)) for one in dataclasses.fields(Order)], frozen=True
)


@pytest.mark.parametrize(
    ("places", "names"),
    [((1,), {"total": 2.0}), ((1, ["a"]), {"total": 2.0, "note": "b"}), ((1,), {}), ((), {"total": 1.0})],
)
def test_every_kind_of_field_is_given_or_left_out(places: tuple[Any, ...], names: dict[str, Any]) -> None:
    def made(cls: Any) -> Any:
        try:
            return vars(cls(*places, **names))
        except TypeError as error:
            return str(error)

    assert made(Order) == made(StandardOrder)
    assert inspect.signature(Order) == inspect.signature(StandardOrder)


def test_a_default_that_is_made_is_made_anew() -> None:
    assert Order(1, total=1.0).lines is not Order(1, total=1.0).lines


def test_it_looks_as_the_standard_one_to_whoever_inspects_it() -> None:
    assert inspect.signature(Point) == inspect.signature(StandardPoint)
    assert Point.__init__.__qualname__ == "Point.__init__"
    assert Point.__match_args__ == StandardPoint.__match_args__
    assert [one.name for one in dataclasses.fields(Point)] == ["x", "y", "tags"]
    assert Point.__doc__ == "Where something is."


def test_values_are_printed_compared_and_hashed_by_their_fields() -> None:
    assert repr(Point(1, tags=("a",))) == "Point(x=1, y=0, tags=('a',))"
    assert Point(1, 2, ("a",)) == Point(1, 2) != Point(1, 3)
    assert Point(1, 2) != StandardPoint(1, 2)
    assert hash(Point(1, 2, ("a",))) == hash(StandardPoint(1, 2, ("b",)))
    assert Basket(["a"]) == Basket(["a"])
    assert Unequal(1) != Unequal(1)
    assert len({Unequal(1), Unequal(1)}) == 2


def test_what_can_be_changed_has_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable type: 'Basket'"):
        hash(Basket())


def test_a_frozen_one_is_neither_assigned_nor_deleted() -> None:
    point: Any = Point(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x


@pytest.mark.parametrize("value", [Point(1, 2, ("a",)), Basket(["a"]), NamedBasket(name="b"), Plane(1, z=3)])
def test_values_are_copied_and_pickled(value: Any) -> None:
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(value) == value
    assert dataclasses.asdict(value).keys() == {one.name for one in dataclasses.fields(value)}


def test_fields_are_inherited_and_own_methods_stay() -> None:
    basket = NamedBasket(["a"], "mine")
    assert (basket.things, basket.at_first, basket.name) == (["a"], 1, "mine")
    assert repr(basket) == "mine"
    assert basket != Basket(["a"])
    assert repr(Plane(1, z=3)).endswith("Plane(x=1, y=0, tags=(), z=3)")
    assert dataclasses.replace(Plane(1, z=3), z=4) == Plane(1, z=4)


def test_a_class_of_the_standard_library_inherits_as_from_its_own() -> None:
    changeable: Any = dataclasses.dataclass
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        changeable(type("Changeable", (Point,), {}))
