"""``@dataclass`` whose methods are written when they are first used.

The standard one writes and compiles up to six functions for every class, most of which a short command never
calls: together an eighth of the time it takes. What it makes is the same, whoever looks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields, make_dataclass
from typing import Any, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)


@dataclass_transform(field_specifiers=(field,))
def dataclass(*, frozen: bool = False, slots: bool = False, eq: bool = True) -> Callable[[Class], Class]:
    """As ``dataclasses.dataclass`` with these options."""

    def make(cls: Any) -> Any:
        if any(_is_frozen(base) for base in cls.__bases__):
            return dataclasses.dataclass(frozen=frozen, slots=slots, eq=eq)(cls)
        written = _written_later(cls, frozen, eq)
        # Slots make another class, and methods belong to that one.
        made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
        for name in written:
            setattr(made, name, _LaterMethod(made, name, frozen))
        if eq and not frozen and "__hash__" not in made.__dict__:
            made.__hash__ = None
        return _freeze(made) if frozen else made

    return make


def _is_frozen(base: type) -> bool:
    return dataclasses.is_dataclass(base) and _parameters(base).frozen


def _parameters(cls: Any) -> Any:
    return cls.__dataclass_params__


def _written_later(cls: type, frozen: bool, eq: bool) -> list[str]:
    """The methods that the class does not have of its own."""
    names = ["__init__", "__repr__", *(["__eq__"] if eq else []), *(["__hash__"] if eq and frozen else [])]
    # A class with an __eq__ of its own is given the hash None by Python.
    own = {name for name, value in cls.__dict__.items() if value is not None}
    return [name for name in names if name not in own]


class _LaterMethod:
    """A method that is written and takes its place when it is looked up, by a call or by whoever reads it."""

    __slots__ = ("_cls", "_frozen", "_name")

    def __init__(self, cls: type, name: str, frozen: bool) -> None:
        self._cls, self._name, self._frozen = cls, name, frozen

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        method = _written(self._cls, self._name, self._frozen)
        setattr(self._cls, self._name, method)
        return method.__get__(instance, owner)


def _written(cls: Any, name: str, frozen: bool) -> Any:
    """The method as the standard library writes it for a class with the same fields."""
    if name == "__init__":
        return _constructor(cls, frozen)
    twin = make_dataclass(
        cls.__name__,
        [(one.name, one.type, one) for one in fields(cls)],
        namespace={"__qualname__": cls.__qualname__, "__module__": cls.__module__, "__doc__": cls.__doc__},
        init=False,
        repr=name == "__repr__",
        eq=name in ("__eq__", "__hash__"),
        frozen=frozen and name == "__hash__",
    )
    return twin.__dict__[name]


def _constructor(cls: Any, frozen: bool) -> Any:
    """The ``__init__``, by far the most used: the standard one comes with others that nobody asked for."""
    known = {"__name__": cls.__module__, "_assign": object.__setattr__, "_left_out": _LEFT_OUT}
    by_place, by_name, lines = ["self"], list[str](), list[str]()
    for one in fields(cls):
        parameter, value = _parameter(one, known)
        if one.init:
            (by_name if one.kw_only else by_place).append(parameter)
        # Without slots a default that nobody can give is found at the class.
        if one.init or one.default_factory is not MISSING or (one.default is not MISSING and _has_slots(cls)):
            lines.append(f"_assign(self, {one.name!r}, {value})" if frozen else f"self.{one.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join([*by_place, *(["*", *by_name] if by_name else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines or ["pass"]), known)
    made: Any = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {one.name: one.type for one in fields(cls) if one.init} | {"return": None}
    return made


def _parameter(one: Field[Any], known: dict[str, Any]) -> tuple[str, str]:
    """A field as a parameter, and what is assigned to it; defaults become known by names of their own."""
    default = f"_default_{one.name}"
    if one.default is not MISSING:
        known[default] = one.default
        return f"{one.name}={default}", one.name if one.init else default
    if one.default_factory is not MISSING:
        known[default] = one.default_factory
        made = f"{default}()"
        return (
            f"{one.name}=_left_out",
            f"{made} if {one.name} is _left_out else {one.name}" if one.init else made,
        )
    return one.name, one.name


def _has_slots(cls: type) -> bool:
    return "__slots__" in cls.__dict__


# What the standard library shows in the place of a default that is made anew each time.
_LEFT_OUT: Any = getattr(dataclasses, "_HAS_DEFAULT_FACTORY", MISSING)


def _freeze(made: Any) -> Any:
    _parameters(made).frozen = True
    made.__setattr__, made.__delattr__ = _refuse_assignment, _refuse_deletion
    # What is unpickled may not be assigned field by field either.
    made.__getstate__, made.__setstate__ = _state, _restore
    return made


def _refuse_assignment(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
