"""``replay``: answers from recorded conversations, so that a run can be repeated without its agent."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ..configs import StrictConfig
from ..threads import blocking
from .contract import ConnectorContext, ConnectorError, ConnectorResponse, ProjectScope, define_connector
from .recordings import Conversation, Recording, read_recording, turns_of

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
