"""``replay``: answers from recorded conversations, so that a run can be repeated without its agent."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import Field

from ..base.concurrency import blocking
from ..base.files import open_regular
from ..base.json_text import UnclearJson, json_once
from ..base.lazy_dataclass import dataclass
from ..base.paths import fields_of, items_of
from ..base.text import cut
from ..configs import StrictConfig
from ..messages import Message, UnreadableItem, read_messages
from .contract import ConnectorContext, ConnectorError, ConnectorResponse, ProjectScope, define_connector

Texts = tuple[str, ...]


class ReplayConfig(StrictConfig):
    """Which recording is played, and how a run finds its conversation in it."""

    file: str = Field(
        min_length=1,
        description='In the project folder; each line {"messages": [...]} with an "id" or "name" if wanted',
    )
    select: Literal["messages", "name"] = Field(
        default="messages", description="By what the user says, or by the name of the run's case or scenario"
    )
    conversation: str | None = Field(default=None, description="The id or name of the one to play, always")


@define_connector(type="replay", label="Replay")
async def replay_agent(ctx: ConnectorContext[ReplayConfig]) -> ConnectorResponse:
    """Plays back what an agent said after the same user message, at the same turn of a recording."""
    recording = await _load(ctx)
    texts, replies = split(ctx.messages)
    conversation = _choose(ctx, recording, texts)
    answer = conversation.answer(texts)
    last = _quoted(texts[-1]) if texts else "an opening"
    if answer is None:
        raise _miss(last, conversation.described(len(texts)))
    rest = answer[len(replies[-1]) :]
    if not rest:
        raise _miss(f"a message after {last}" if texts else last, "nothing more recorded")
    return ConnectorResponse(rest, metadata={"replayed": conversation.label})


@replay_agent.test
async def replay_test(ctx: ConnectorContext[ReplayConfig]) -> str:
    """Whether the recording can be read."""
    recording = await _load(ctx)
    return f"{len(recording.conversations)} recorded conversations"


async def _load(ctx: ConnectorContext[ReplayConfig]) -> Recording:
    recording: Any = ctx.run.memory.get("replay.recording")
    if recording is None:
        project, file = ctx.connector.project, ctx.config.file
        recording = ctx.run.memory["replay.recording"] = await blocking.run(lambda: _read(project, file))
    return recording


def _read(project: ProjectScope | None, file: str) -> Recording:
    """The recording in a file; read once as long as the file stays the same."""
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
    try:
        facts = path.stat()
        return _read_lines(path, facts.st_mtime_ns, facts.st_size, file)
    except OSError as error:
        raise ConnectorError(f'the file "{file}" cannot be read ({error.strerror})') from None


def _choose(ctx: ConnectorContext[ReplayConfig], recording: Recording, texts: Texts) -> Conversation:
    if ctx.config.conversation is not None:
        return _named(recording, [ctx.config.conversation])
    if ctx.config.select == "name":
        run = ctx.run
        names = [f"{run.scenario}/{run.case}" if run.case else "", run.case, run.scenario]
        return _named(recording, [name for name in names if name])
    conversation = recording.by_messages.get(texts)
    if conversation is None:
        there = "; ".join(c.described(len(texts)) for c in recording.nearest(texts))
        raise _miss(f"{_quoted(texts[-1])} at turn {len(texts)}" if texts else "an opening", there)
    return conversation


def _named(recording: Recording, names: list[str]) -> Conversation:
    conversation = next((recording.by_name[name] for name in names if name in recording.by_name), None)
    if conversation is None:
        there = ", ".join(list(recording.by_name)[:10]) or "no conversation with a name"
        raise _miss(" or ".join(f'the conversation "{name}"' for name in names) or "no name", there)
    return conversation


def _miss(request: str, there: str) -> ConnectorError:
    return ConnectorError(f"nothing recorded for this: asked for {request}; recorded is {there or 'nothing'}")


def _quoted(text: str) -> str:
    return f'"{cut(text, 120)}"'


def _normal(text: str) -> str:
    """Texts are compared without the accidents of typing: composed, outer and repeated blanks removed."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def split(messages: Iterable[Message]) -> tuple[Texts, list[list[Message]]]:
    """What the user says, and what follows each text; the first list is what comes before all of them."""
    texts: list[str] = []
    replies: list[list[Message]] = [[]]
    for message in messages:
        if message.role == "user":
            texts.append(_normal(message.text))
            replies.append([])
        else:
            replies[-1].append(message)
    return tuple(texts), replies


@dataclass(slots=True, frozen=True)
class Conversation:
    """One line of a recording. ``replies`` has one list more than ``texts``: what came before the first."""

    label: str
    texts: Texts
    replies: list[list[Message]]

    def answer(self, texts: Texts) -> list[Message] | None:
        """What followed the last of these user texts, if it came at the same turn."""
        turn = len(texts)
        if turn > len(self.texts) or (texts and self.texts[turn - 1] != texts[-1]):
            return None
        return self.replies[turn] if turn or self.replies[0] else None

    def described(self, turn: int) -> str:
        """The user's text at a turn, for an error."""
        if turn == 0 or turn > len(self.texts):
            return f"{self.label}, {len(self.texts)} turns"
        return f"{_quoted(self.texts[turn - 1])} ({self.label})"


@dataclass(slots=True)
class Recording:
    """All conversations of a file. The first wins where two say the same."""

    conversations: list[Conversation] = field(default_factory=list[Conversation])
    by_name: dict[str, Conversation] = field(default_factory=dict[str, Conversation])
    by_messages: dict[Texts, Conversation] = field(default_factory=dict[Texts, Conversation])

    def add(self, conversation: Conversation, names: Iterable[str]) -> None:
        self.conversations.append(conversation)
        for name in names:
            self.by_name.setdefault(name, conversation)
        for length in range(len(conversation.texts) + 1):
            self.by_messages.setdefault(conversation.texts[:length], conversation)

    def nearest(self, texts: Texts) -> list[Conversation]:
        """A few conversations that went the same way up to the last message, else the first ones."""
        before = texts[:-1]
        longer = (c for c in self.conversations if len(c.texts) > len(before))
        return ([c for c in longer if c.texts[: len(before)] == before] or self.conversations)[:3]


@lru_cache(maxsize=8)
def _read_lines(path: Path, _changed: int, _size: int, name: str) -> Recording:
    recording = Recording()
    with open_regular(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                _add_line(recording, line, f"{name}:{number}")
    if not recording.conversations:
        raise ConnectorError(f'the file "{name}" holds no conversation')
    return recording


def _add_line(recording: Recording, line: bytes, where: str) -> None:
    try:
        value: Any = json_once(line.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        raise ConnectorError(f"{where}: not valid JSON: {error.msg}") from None
    except UnclearJson as error:
        raise ConnectorError(f"{where}: {error}") from None
    fields = fields_of(value)
    items = items_of(fields.get("messages"))
    if items is None:
        raise ConnectorError(f'{where}: expected an object with "messages", a list')
    try:
        messages = read_messages(items)
    except UnreadableItem as error:
        raise ConnectorError(f"{where}: {error}") from None
    names = [str(fields[key]) for key in ("name", "id") if fields.get(key) is not None]
    recording.add(Conversation(names[0] if names else where, *split(messages)), names)
