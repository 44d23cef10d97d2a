"""Recorded conversations: read from JSON lines, indexed by name and by what the user said."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from ..configs import readable
from ..messages import Message
from .errors import ConnectorError
from .json_paths import fields_of, items_of

_LONGEST_SHOWN = 120


@dataclass(slots=True)
class Turn:
    """What the user said, nothing before the first time, and every message up to the next."""

    said: str | None
    messages: list[Message] = field(default_factory=list[Message])


def normal(text: str) -> str:
    """Texts are compared without the accidents of typing: composed, outer and repeated blanks removed."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def turns_of(messages: Iterable[Message]) -> list[Turn]:
    """A conversation cut where the user speaks."""
    turns: list[Turn] = []
    for message in messages:
        if message.role == "user":
            turns.append(Turn(normal(message.text)))
        else:
            if not turns:
                turns.append(Turn(None))
            turns[-1].messages.append(message)
    return turns


@dataclass(slots=True, frozen=True)
class Conversation:
    """One line of a recording."""

    label: str
    turns: list[Turn]

    @property
    def said(self) -> tuple[str, ...]:
        return tuple(turn.said for turn in self.turns if turn.said is not None)

    def answer(self, said: Sequence[str]) -> list[Message] | None:
        """What followed the last of these user messages, if it was said at the same turn."""
        spoken = [turn for turn in self.turns if turn.said is not None]
        if not said:
            opening = self.turns[0] if self.turns else None
            return opening.messages if opening and opening.said is None else None
        if len(said) > len(spoken) or spoken[len(said) - 1].said != said[-1]:
            return None
        return spoken[len(said) - 1].messages

    def described(self, turn: int) -> str:
        """What the user said here at a turn, for an error."""
        said = self.said
        if turn == 0 or turn > len(said):
            return f"{self.label}, {len(said)} turns"
        text = said[turn - 1]
        return f'"{text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"}" ({self.label})'


@dataclass(slots=True)
class Recording:
    """All conversations of a file. The first wins where two say the same."""

    conversations: list[Conversation] = field(default_factory=list[Conversation])
    by_name: dict[str, Conversation] = field(default_factory=dict[str, Conversation])
    by_messages: dict[tuple[str, ...], Conversation] = field(
        default_factory=dict[tuple[str, ...], Conversation]
    )

    def add(self, conversation: Conversation, names: Iterable[str]) -> None:
        self.conversations.append(conversation)
        for name in names:
            self.by_name.setdefault(name, conversation)
        said = conversation.said
        for length in range(len(said) + 1):
            self.by_messages.setdefault(said[:length], conversation)

    def nearest(self, said: tuple[str, ...], most: int = 3) -> list[Conversation]:
        """Conversations that went the same way up to the last message, else the first ones."""
        before = said[:-1]
        same = [
            c for c in self.conversations if c.said[: len(before)] == before and len(c.said) > len(before)
        ]
        return (same or self.conversations)[:most]


def read_recording(path: Path, shown: str) -> Recording:
    """The recording in a file; read once as long as the file stays the same."""
    try:
        facts = path.stat()
        return _read(path, facts.st_mtime_ns, facts.st_size, shown)
    except OSError as error:
        raise ConnectorError(f'the file "{shown}" cannot be read ({error.strerror})') from None


@lru_cache(maxsize=8)
def _read(path: Path, _changed: int, _size: int, shown: str) -> Recording:
    recording = Recording()
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                _add_line(recording, line, f"{shown}:{number}")
    if not recording.conversations:
        raise ConnectorError(f'the file "{shown}" holds no conversation')
    return recording


def _add_line(recording: Recording, line: bytes, where: str) -> None:
    try:
        value: Any = orjson.loads(line.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        raise ConnectorError(f"{where}: not valid JSON: {error.msg}") from None
    fields = fields_of(value)
    given = items_of(fields.get("messages"))
    if given is None:
        raise ConnectorError(f'{where}: expected an object with "messages", a list')
    try:
        messages = [Message.model_validate(item) for item in given]
    except ValidationError as error:
        path, problem = readable(error)[0]
        raise ConnectorError(f"{where}: not a message: {path}: {problem}") from None
    names = [str(fields[key]) for key in ("name", "id") if fields.get(key) is not None]
    recording.add(Conversation(names[0] if names else where, turns_of(messages)), names)
