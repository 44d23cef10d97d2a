"""``replay``: answers from recorded conversations, so that a run can be repeated without its agent."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import Field, ValidationError

from ..base.concurrency import blocking
from ..base.problems import problems_of
from ..configs import StrictConfig
from ..messages import Message
from .contract import ConnectorContext, ConnectorError, ConnectorResponse, ProjectScope, define_connector
from .json_paths import fields_of, items_of

_LONGEST_SHOWN = 120


class ReplayConfig(StrictConfig):
    """Which recording is played, and how a run finds its conversation in it."""

    file: str = Field(
        min_length=1,
        description='In the project folder; each line {"messages": [...]} with an "id" or "name" if wanted',
    )
    select: Literal["messages", "name"] = Field(
        default="messages",
        description="By what the user says, or by the name of the run's case or scenario",
    )
    conversation: str | None = Field(default=None, description="The id or name of the one to play, always")


@define_connector(type="replay", label="Replay")
async def replay_agent(ctx: ConnectorContext[ReplayConfig]) -> ConnectorResponse:
    """Plays back what an agent said after the same user message, at the same turn of a recording."""
    recording = await _load(ctx)
    asked = turns_of(ctx.messages)
    said = tuple(turn.said for turn in asked if turn.said is not None)
    conversation = _choose(ctx, recording, said)
    answer = conversation.answer(said)
    if answer is None:
        raise _miss(f'"{_cut(said[-1])}"' if said else "an opening", conversation.described(len(said)))
    rest = list(answer)[len(asked[-1].messages) if asked else 0 :]
    if not rest:
        raise _miss(f'a message after "{_cut(said[-1])}"' if said else "an opening", "nothing more recorded")
    return ConnectorResponse(rest, metadata={"replayed": conversation.label})


@replay_agent.test
async def replay_test(ctx: ConnectorContext[ReplayConfig]) -> str:
    """Whether the recording can be read."""
    recording = await _load(ctx)
    return f"{len(recording.conversations)} recorded conversations"


async def _load(ctx: ConnectorContext[ReplayConfig]) -> Recording:
    kept: Any = ctx.run.memory.get("replay.recording")
    if kept is None:
        project, file = ctx.connector.project, ctx.config.file
        kept = ctx.run.memory["replay.recording"] = await blocking.run(lambda: _read(project, file))
    return kept


def _read(project: ProjectScope | None, file: str) -> Recording:
    if project is None:
        raise ConnectorError(f'the file "{file}" cannot be read: there is no project folder here')
    folder = project.folder.resolve()
    try:
        path = (folder / file).resolve()
    except (OSError, RuntimeError, ValueError):
        raise ConnectorError(f'"{file}" is not a usable path') from None
    if not path.is_relative_to(folder):
        raise ConnectorError(f'the file "{file}" is outside the project folder')
    if not path.is_file():
        raise ConnectorError(f'there is no file "{file}" in the project folder')
    return read_recording(path, file)


def _choose(ctx: ConnectorContext[ReplayConfig], recording: Recording, said: tuple[str, ...]) -> Conversation:
    if ctx.config.conversation is not None:
        return _named(recording, [ctx.config.conversation])
    if ctx.config.select == "name":
        run = ctx.run
        names = [f"{run.scenario}/{run.case}" if run.case else "", run.case, run.scenario]
        return _named(recording, [name for name in names if name])
    found = recording.by_messages.get(said)
    if found is None:
        there = "; ".join(c.described(len(said)) for c in recording.nearest(said))
        raise _miss(f'"{_cut(said[-1])}" at turn {len(said)}' if said else "an opening", there)
    return found


def _named(recording: Recording, names: list[str]) -> Conversation:
    found = next((recording.by_name[name] for name in names if name in recording.by_name), None)
    if found is None:
        there = ", ".join(list(recording.by_name)[:10]) or "no conversation with a name"
        raise _miss(" or ".join(f'the conversation "{name}"' for name in names) or "no name", there)
    return found


def _miss(asked: str, there: str) -> ConnectorError:
    return ConnectorError(f"nothing recorded for this: asked for {asked}; recorded is {there or 'nothing'}")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


_LONGEST_EXCERPT = 120


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
        return _read_lines(path, facts.st_mtime_ns, facts.st_size, shown)
    except OSError as error:
        raise ConnectorError(f'the file "{shown}" cannot be read ({error.strerror})') from None


@lru_cache(maxsize=8)
def _read_lines(path: Path, _changed: int, _size: int, shown: str) -> Recording:
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
        raise ConnectorError(f"{where}: not a message: {problems_of(error)[0]}") from None
    names = [str(fields[key]) for key in ("name", "id") if fields.get(key) is not None]
    recording.add(Conversation(names[0] if names else where, turns_of(messages)), names)
