"""``{{name}}`` in a scenario's texts and data, filled from the case; what has no value is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import field
from itertools import islice
from typing import Any, cast

import orjson

from ..base import placeholders
from ..base.json_text import json_text
from ..base.lazy_dataclass import dataclass
from ..base.paths import MISSING, Steps, lookup, strings_in
from ..base.problems import Problem, ProblemList, suggestion
from ..messages import Message

# The values of a case; none at all where a scenario has no cases.
Values = Mapping[str, Any] | None
Names = Callable[[str], bool]

_MOST_NAMES = 40


def fill(text: str, values: Values) -> str:
    """The text with its placeholders replaced; those without a value are told all at once."""
    return _Filler(values).all_of(lambda filler: filler.text(text, ()))


def fill_data(data: Any, values: Values) -> Any:
    """Data with every text in it filled; a text that is one placeholder becomes the value itself."""
    return _Filler(values).all_of(lambda filler: filler.data(data, ()))


def with_numbers_read(
    unfilled: Mapping[str, Any], filled: Mapping[str, Any], places: Iterable[Steps]
) -> dict[str, Any] | None:
    """Data with the texts at these places as the numbers and truth values they are; none if there is no such.

    Only where a placeholder was the whole value: what is written there is the author's.
    """
    read = deepcopy(dict(filled))
    numbers = {
        place: number for place in places if (number := _number_at(unfilled, filled, place)) is not None
    }
    for place, number in numbers.items():
        holder: Any = _at(read, place[:-1])
        holder[place[-1]] = number
    return read if numbers else None


def _number_at(unfilled: Any, filled: Any, place: Steps) -> bool | int | float | None:
    written, text = _at(unfilled, place), _at(filled, place)
    if not (isinstance(written, str) and isinstance(text, str) and placeholders.only_placeholder(written)):
        return None
    with suppress(orjson.JSONDecodeError):
        value: object = orjson.loads(text)
        return value if isinstance(value, bool | int | float) else None
    return None


def _at(data: Any, place: Steps) -> Any:
    for step in place:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def fill_template(text: str, values: Values, own: Names) -> str:
    """A text with placeholders of its own, which stay: values of the case are put into it and never read."""
    return _Filler(values).all_of(lambda filler: filler.template(text, own))


def fill_message(message: Message, values: Values) -> Message:
    """A message with all of its texts filled, those in the arguments of tool calls included."""
    if not has_placeholders(message.to_json()):
        return message
    return Message.model_validate(_Filler(values).all_of(lambda filler: filler.message(message.to_json())))


def has_placeholders(data: Any) -> bool:
    """Whether there is anything to fill in, or an escape to take out."""
    return any("{{" in text for text in strings_in(data))


def check_names(names: Iterable[str], values: Values) -> None:
    """Refuse names that have no value in a case."""
    filler = _Filler(values)
    for name in names:
        filler.value(name, ())
    filler.problems.check()


@dataclass(slots=True)
class _Filler:
    """Fills from one case and gathers what has no value, each with its path."""

    values: Values
    problems: ProblemList = field(default_factory=ProblemList)

    def all_of(self, work: Callable[[_Filler], Any]) -> Any:
        result = work(self)
        self.problems.check()
        return result

    def value(self, name: str, path: Steps) -> Any:
        value = self._known(name)
        if value is MISSING and placeholders.is_name(name):
            self.problems.append(self._unfilled(name, path))
        return value

    def _known(self, name: str) -> Any:
        """The value of a name; a column may be called anything, but only names are read as paths."""
        values = self.values or {}
        return lookup(values, name) if placeholders.is_name(name) else values.get(name, MISSING)

    def _unfilled(self, name: str, path: Steps) -> Problem:
        braces = f"{{{{{name}}}}}"
        if self.values is None:
            message = f"{braces} has no value: the scenario has no cases"
            return Problem(message, path, f"add cases that give it one, or keep the braces with \\{braces}")
        known = list(islice(_paths(self.values), _MOST_NAMES))
        message = f"{braces} has no value in this case"
        return Problem(message, path, suggestion(name, known, "its values are:"))

    def written(self, name: str, path: Steps) -> str | None:
        value = self.value(name, path)
        return None if value is MISSING else placeholders.written(value)

    def text(self, text: str, path: Steps) -> str:
        return placeholders.fill(text, lambda name: self.written(name, path))

    def template(self, text: str, own: Names) -> str:
        return placeholders.fill_outer(text, lambda name: None if own(name) else self.written(name, ()))

    def data(self, data: Any, path: Steps) -> Any:
        if isinstance(data, str):
            name = placeholders.only_placeholder(data)
            value = MISSING if name is None else self._known(name)
            return self.text(data, path) if value is MISSING else value
        if isinstance(data, dict):
            return self._mapping(cast(dict[Any, Any], data), path)
        if isinstance(data, list):
            items = cast(list[Any], data)
            return [self.data(item, (*path, number)) for number, item in enumerate(items)]
        return data

    def _mapping(self, data: dict[Any, Any], path: Steps) -> dict[Any, Any]:
        filled: dict[Any, Any] = {}
        for key, item in data.items():
            inner = (*path, str(key))
            name = self.text(key, inner) if isinstance(key, str) else key
            if name in filled:
                self.problems.append(Problem(f'"{name}" is there twice once it is filled in', inner))
            filled[name] = self.data(item, inner)
        return filled

    def message(self, data: Any, path: Steps = ()) -> Any:
        """The parts of a message: texts stay texts, and JSON in a text is filled as data."""
        if isinstance(data, str):
            return self._arguments(data, path) if path[-1:] == ("arguments",) else self.text(data, path)
        if isinstance(data, dict):
            fields = cast(dict[str, Any], data)
            return {key: self.message(item, (*path, key)) for key, item in fields.items()}
        if isinstance(data, list):
            items = cast(list[Any], data)
            return [self.message(item, (*path, number)) for number, item in enumerate(items)]
        return data

    def _arguments(self, text: str, path: Steps) -> str:
        """Arguments of a tool call. As data, a value with quotes in it leaves the JSON whole."""
        try:
            return json_text(self.data(orjson.loads(text), path))
        except orjson.JSONDecodeError:
            return self.text(text, path)


def _paths(values: Mapping[str, Any]) -> Iterator[str]:
    """The names a case knows, those inside its objects as paths."""
    for name in sorted(values):
        yield name
    for name in sorted(values):
        inner = values[name]
        if isinstance(inner, Mapping):
            yield from (f"{name}.{path}" for path in _paths(cast(Mapping[str, Any], inner)))
