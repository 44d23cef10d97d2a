"""``fields``: where in a document the parts of a conversation stand, for formats nobody knows here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.json_text import json_kind
from ..base.paths import MISSING, fields_of, items_of, lookup, read_path
from ..base.problems import InvalidInput, ProblemList, suggestion
from .alongside import TARGETS, place
from .conversation import RecordedConversation
from .documents import decode
from .parts import Fields, UnreadableConversation, build, conversation_of

_MESSAGE = "messages."
_ROLE = "roles."


class FieldMapping:
    """Paths by target. ``messages.X`` is followed inside each message; ``roles.X`` names a role as ours."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        check_fields(fields)
        self._fields = {
            target: path
            for target, path in fields.items()
            if target != "messages" and not target.startswith((_MESSAGE, _ROLE))
        }
        self._messages = fields.get("messages")
        self._parts = _without(fields, _MESSAGE)
        self._roles = _without(fields, _ROLE)

    def __bool__(self) -> bool:
        return bool(self._fields or self.has_messages)

    @property
    def has_messages(self) -> bool:
        return bool(self._messages or self._parts or self._roles)

    def read(self, fields: Fields) -> RecordedConversation:
        """The conversation whose messages are mapped."""
        path = self._messages or "messages"
        value = lookup(fields, path)
        items = items_of(_unpacked(value))
        if items is None:
            kind = "nothing" if value is MISSING else f"a JSON {json_kind(value)}"
            raise UnreadableConversation(f'has {kind} at "{path}" where fields.messages names its messages')
        return conversation_of(build(map(self._message, items)), None)

    def complete(self, conversation: RecordedConversation, fields: Fields) -> None:
        """Add what is mapped beside the messages; what is mapped and not there is not there at all."""
        for target, path in self._fields.items():
            value = lookup(fields, path)
            if value is not MISSING and value is not None:
                place(conversation, target, value)
            elif target == "id":
                raise UnreadableConversation(f'has no id at "{path}"')

    def _message(self, item: Any) -> Any:
        fields = fields_of(item)
        if not fields:
            return item
        mapped = {name: lookup(fields, path) for name, path in self._parts.items()}
        taken = set(self._parts.values())
        message = {name: value for name, value in fields.items() if name not in taken or name in mapped}
        message |= {name: value for name, value in mapped.items() if value is not MISSING}
        role = message.get("role")
        return message | {"role": self._roles.get(role, role)} if isinstance(role, str) else message


def _without(fields: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): path for name, path in fields.items() if name.startswith(prefix)}


def _unpacked(value: Any) -> Any:
    """A column of a table may hold the messages as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return decode(value.encode())
    except (ValueError, UnicodeEncodeError):
        return value


def check_fields(fields: Mapping[str, str]) -> None:
    """Refuse targets that do not exist and paths that cannot be read, all at once."""
    problems = ProblemList()
    for target, path in fields.items():
        with problems.collect("fields", target):
            _check(target, path)
    problems.check()


def _check(target: str, path: str) -> None:
    known = ("messages", *TARGETS)
    if target not in known and not target.startswith((_MESSAGE, _ROLE, "metadata.")):
        raise InvalidInput(f'"{target}" is no target; {suggestion(target, known, "known are")}')
    try:
        read_path(path)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
