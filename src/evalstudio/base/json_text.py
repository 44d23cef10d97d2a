"""JSON text of whatever an agent or a caller came up with: an odd value costs its own place only."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AnySet
from datetime import datetime
from typing import Any, NoReturn, Protocol, cast

import orjson

from .times import iso

_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_SERIALIZE_NUMPY
_DEEPEST = 200
_HOLDERS = (dict, list)
Holder = dict[str, Any] | list[Any]


class HasJson(Protocol):
    """What says itself how it is written as JSON."""

    def to_json(self) -> dict[str, Any]: ...


def json_bytes(value: object, *, sort_keys: bool = False) -> bytes:
    """Compact JSON. NaN is null, functions vanish, what JSON cannot hold becomes its ``str``.

    The common case is one call; odd values are brought into shape on a second try.
    """
    options = _OPTIONS | orjson.OPT_SORT_KEYS if sort_keys else _OPTIONS
    try:
        return orjson.dumps(value, default=_plain, option=options)
    except (TypeError, RecursionError):
        return orjson.dumps(_clean(value, 0), default=str, option=options)


def strict_json_bytes(value: object) -> bytes:
    """What ``json_bytes`` gives on its first try; ``orjson.JSONEncodeError`` where it needs a second one."""
    return orjson.dumps(value, _plain, _OPTIONS)


def json_text(value: object, *, sort_keys: bool = False) -> str:
    """``json_bytes`` as text."""
    return json_bytes(value, sort_keys=sort_keys).decode()


def json_line(result: HasJson | Mapping[str, Any]) -> bytes:
    """One result as a line of its own."""
    return json_bytes(dict(result) if isinstance(result, Mapping) else result.to_json()) + b"\n"


def clean_text(text: str) -> str:
    """Text without what databases refuse: NUL and halves of surrogate pairs."""
    return whole_text(text.replace("\x00", "\ufffd") if "\x00" in text else text)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return _moment(value)
    if callable(value):
        raise TypeError("a function has no place in JSON")
    if isinstance(value, AnySet):
        return list(cast(AnySet[Any], value))
    as_json = _json_of(value)
    return str(value) if as_json is None else as_json


def _json_of(value: object) -> object | None:
    if isinstance(value, type):
        return None
    if callable(convert := getattr(value, "to_json", None)):
        return convert()
    convert = getattr(value, "model_dump", None)
    return convert(exclude_none=True) if callable(convert) else None


def _moment(value: datetime) -> str:
    try:
        return iso(value)
    except ValueError:
        # In another time zone it would be before the first year, or after the last.
        return str(value)


def _clean(value: Any, depth: int) -> Any:
    """The same value in what JSON can hold; the deepest parts become an ellipsis."""
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        items = cast(Mapping[Any, Any], value).items()
        return {_key(key): _clean(item, depth + 1) for key, item in items if not callable(item)}
    if isinstance(value, list | tuple | AnySet):
        return [_clean(item, depth + 1) for item in cast(Sequence[Any], value) if not callable(item)]
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    as_json = _json_of(value)
    return value if as_json is None else _clean(as_json, depth + 1)


def _key(key: object) -> str:
    if isinstance(key, str):
        return whole_text(key)
    return json_text(key) if key is None or isinstance(key, bool | int | float) else whole_text(str(key))


def whole_text(text: str) -> str:
    """Text with the halves of surrogate pairs joined or replaced: alone they cannot be stored or sent."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def strict_json(text: str) -> Any:
    """The one value the text is, or ``ValueError``: nothing around it, no key twice, no number out of bounds.

    Raw line breaks inside strings are what models write; they do not change the meaning.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


class UnclearJson(ValueError):
    """An object has a key twice, or is too deep to tell. Readers differ in which of the two counts, so that
    what is looked at need not be what is acted upon.
    """


def json_once(text: str | bytes | bytearray) -> Any:
    """The value of a JSON text. ``UnclearJson`` where an object has a key twice.

    A text with more strings than its value, keys included, is read a second time, slowly.
    """
    value = orjson.loads(text)
    if type(value) in _HOLDERS:
        quotes = text.count('"') if isinstance(text, str) else text.count(b'"')
        if quotes != 2 * _strings_at_top(value) and not _is_whole(text, quotes, _strings_in(value)):
            _check_keys(text if isinstance(text, str) else text.decode())
    return value


def _strings_at_top(value: Holder) -> int:
    if isinstance(value, dict):
        kinds = [*map(type, value.values())]
        return len(kinds) + kinds.count(str)
    return [*map(type, value)].count(str)


def _strings_in(value: Holder) -> int:
    count, left = 0, [value]
    for holder in left:
        is_object = isinstance(holder, dict)
        count += len(holder) if is_object else 0
        for item in holder.values() if is_object else holder:
            if type(item) is str:
                count += 1
            elif type(item) in _HOLDERS:
                left.append(item)
    return count


def _is_whole(text: str | bytes | bytearray, quotes: int, strings: int) -> bool:
    """Whether a text surely has no more strings than its value: quotes inside of strings are escaped."""
    if quotes == 2 * strings:
        return True
    raw = text.encode() if isinstance(text, str) else text
    # After two of them a quote is not escaped.
    return b"\\\\" not in raw and quotes - raw.count(b'\\"') == 2 * strings


def _check_keys(text: str) -> None:
    try:
        _ONCE.decode(text)
    except RecursionError:
        raise UnclearJson("JSON that is nested too deeply") from None


def json_kind(value: object) -> str:
    """What JSON calls a value that is no object."""
    kinds = {"list": "list", "str": "text", "bool": "boolean", "NoneType": "null"}
    return kinds.get(type(value).__name__, "number")


def why_not_json(text: bytes, error: json.JSONDecodeError) -> str:
    """What is wrong with bytes that should be JSON."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return "is not UTF-8 text"
    return f"is not valid JSON: {error.msg} (column {error.colno})"


def fields_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """What a reader of JSON makes of the fields of an object, if no key is there twice."""
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise UnclearJson(there_twice(key))
        fields[key] = value
    return fields


def there_twice(key: str) -> str:
    return f'JSON that can be read in more than one way: "{key[:40]}" is there twice'


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large a number")
    return number


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number in JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=fields_once, parse_float=_number, parse_constant=_no_number, strict=False
)
# For its keys alone: a number that Python does not read is no reason to refuse what was read already.
_ONCE = json.JSONDecoder(object_pairs_hook=fields_once, parse_int=str, parse_float=str, strict=False)
