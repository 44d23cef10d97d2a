"""The ``replay`` connector answers from recorded conversations and fails loudly where none fits."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.sessions import QUICK, ask, session_of, settings_of, talk, user

from evalstudio.connectors.contract import ConnectorError, RunInfo
from evalstudio.connectors.http_pool import HttpPool
from evalstudio.connectors.replay import replay_agent
from evalstudio.connectors.session import AgentSession, test_connector
from evalstudio.messages import Message


def said(role: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
BOOKING = {
    "name": "booking",
    "messages": [
        said("user", "My booking?"),
        said("assistant", "", tool_calls=[CALL]),
        said("tool", "found", tool_call_id="c1"),
        said("assistant", "Confirmed."),
        said("user", "Thanks"),
        said("assistant", "Bye."),
    ],
}
GREETING = {"id": "g-1", "messages": [said("user", "Hi"), said("assistant", "Hello!")]}
OTHER_GREETING = {
    "name": "Greet/long",
    "messages": [
        said("user", "Hi"),
        said("assistant", "Hey."),
        said("user", "Müsli?"),
        said("assistant", "Ja."),
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "recorded.jsonl", BOOKING, GREETING, OTHER_GREETING)
    return tmp_path


def write(path: Path, *lines: object) -> None:
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")


def session(pool: HttpPool, folder: Path | None, run: RunInfo | None = None, **config: Any) -> AgentSession:
    config.setdefault("file", "recorded.jsonl")
    return session_of(replay_agent, pool, config, folder=folder, run=run)


async def failure(opened: AgentSession, text: str = "Hi") -> str:
    with pytest.raises(ConnectorError) as caught:
        await ask(opened, text)
    return str(caught.value)


async def test_a_recorded_conversation_plays_turn_by_turn(pool: HttpPool, folder: Path):
    _, replies = await talk(session(pool, folder), "My booking?", "Thanks")
    assert [[m.role for m in reply.messages] for reply in replies] == [
        ["assistant", "tool", "assistant"],
        ["assistant"],
    ]
    assert replies[0].messages[0].tool_calls is not None
    assert replies[1].messages[0].text == "Bye."
    assert replies[1].metadata == {"replayed": "booking"}


async def test_the_conversation_that_goes_on_as_the_user_does_is_chosen(pool: HttpPool, folder: Path):
    messages, _ = await talk(session(pool, folder), "Hi", "Mu\u0308sli? ")
    assert [m.text for m in messages if m.role == "assistant"] == ["Hello!", "Ja."]


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (RunInfo("r", scenario="Greet", case="long"), "Hey."),
        (RunInfo("r", scenario="x", case="g-1"), "Hello!"),
        (RunInfo("r", scenario="g-1"), "Hello!"),
    ],
)
async def test_a_conversation_is_found_by_the_name_of_case_or_scenario(
    pool: HttpPool, folder: Path, run: RunInfo, text: str
):
    reply = await ask(session(pool, folder, run, select="name"))
    assert reply.messages[0].text == text


async def test_one_conversation_can_be_named_for_good(pool: HttpPool, folder: Path):
    assert (await ask(session(pool, folder, conversation="Greet/long"))).messages[0].text == "Hey."


async def test_a_miss_says_what_was_asked_and_what_was_there(pool: HttpPool, folder: Path):
    message = await failure(session(pool, folder), "Where is my luggage?")
    assert 'asked for "Where is my luggage?" at turn 1' in message
    assert '"My booking?" (booking)' in message
    assert '"Hi" (g-1)' in message


async def test_a_miss_at_a_later_turn_shows_what_came_there(pool: HttpPool, folder: Path):
    opened = session(pool, folder)
    messages, _ = await talk(opened, "My booking?")
    messages.append(user("No thanks"))
    with pytest.raises(
        ConnectorError, match=r'asked for "No thanks" at turn 2; recorded is "Thanks" \(booking\)'
    ):
        await opened.invoke(messages, messages[-1:])


async def test_a_named_conversation_that_goes_another_way_is_a_miss(pool: HttpPool, folder: Path):
    message = await failure(session(pool, folder, conversation="booking"), "Hi")
    assert 'asked for "Hi"; recorded is "My booking?" (booking)' in message


async def test_a_conversation_that_has_ended_is_a_miss(pool: HttpPool, folder: Path):
    opened = session(pool, folder, conversation="g-1")
    messages, _ = await talk(opened, "Hi")
    messages.append(user("Still there?"))
    with pytest.raises(ConnectorError, match="recorded is g-1, 1 turns"):
        await opened.invoke(messages, messages[-1:])


async def test_an_unknown_name_is_a_miss_with_the_known_ones(pool: HttpPool, folder: Path):
    message = await failure(session(pool, folder, RunInfo("r", scenario="Nope"), select="name"))
    assert 'the conversation "Nope"; recorded is booking, g-1, Greet/long' in message
    assert "no name" in await failure(session(pool, folder, select="name"))


async def test_a_user_message_without_an_answer_is_a_miss(pool: HttpPool, folder: Path):
    write(folder / "cut.jsonl", {"messages": [said("user", "Hi")]})
    assert "nothing more recorded" in await failure(session(pool, folder, file="cut.jsonl"))


async def test_after_a_tool_message_of_a_seed_the_rest_of_the_turn_is_played(pool: HttpPool, folder: Path):
    seed = [Message.model_validate(message) for message in BOOKING["messages"][:3]]
    reply = await session(pool, folder).invoke(seed, seed)
    assert [m.text for m in reply.messages] == ["Confirmed."]


async def test_an_agent_that_speaks_first_is_played_too(pool: HttpPool, folder: Path):
    write(folder / "first.jsonl", {"messages": [said("assistant", "Welcome!"), said("user", "Hi")]})
    reply = await session(pool, folder, file="first.jsonl").invoke([], [])
    assert reply.messages[0].text == "Welcome!"


@pytest.mark.parametrize("path", ["../outside.jsonl", "/etc/passwd", "a/../../outside.jsonl", "link.jsonl"])
async def test_a_file_outside_the_project_folder_is_refused(pool: HttpPool, tmp_path: Path, path: str):
    folder = tmp_path / "project"
    folder.mkdir()
    write(tmp_path / "outside.jsonl", GREETING)
    os.symlink(tmp_path / "outside.jsonl", folder / "link.jsonl")
    assert "is outside the project folder" in await failure(session(pool, folder, file=path))


async def test_a_link_within_the_project_folder_is_fine(pool: HttpPool, folder: Path):
    os.symlink(folder / "recorded.jsonl", folder / "link.jsonl")
    assert (await ask(session(pool, folder, file="link.jsonl"))).messages[0].text == "Hello!"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("missing.jsonl", 'there is no file "missing.jsonl"'),
        (".", "there is no file"),
        ("a\0b", "is not a usable path"),
        ("empty.jsonl", "holds no conversation"),
        ("bad.jsonl", "bad.jsonl:2: not valid JSON"),
        ("shape.jsonl", 'shape.jsonl:1: expected an object with "messages"'),
        ("message.jsonl", "message.jsonl:1: message 1 is not valid: role"),
    ],
)
async def test_a_file_that_cannot_be_used_is_named_with_the_line(
    pool: HttpPool, folder: Path, path: str, words: str
):
    (folder / "empty.jsonl").write_text("\n\n")
    (folder / "bad.jsonl").write_text(json.dumps(GREETING) + "\n{oops")
    write(folder / "shape.jsonl", ["no", "object"])
    write(folder / "message.jsonl", {"messages": [{"content": "x"}]})
    assert words in await failure(session(pool, folder, file=path))


async def test_without_a_project_no_file_is_read(pool: HttpPool):
    assert "there is no project folder" in await failure(session(pool, None))


async def test_a_changed_file_is_read_again(pool: HttpPool, folder: Path):
    await ask(session(pool, folder))
    write(folder / "recorded.jsonl", {"messages": [said("user", "Hi"), said("assistant", "New!")]})
    assert (await ask(session(pool, folder))).messages[0].text == "New!"


async def test_testing_it_reads_the_file(pool: HttpPool, folder: Path):
    settings = settings_of(replay_agent, {"file": "recorded.jsonl"}, folder=folder)
    check = await test_connector(replay_agent, settings, pool=pool, policy=QUICK)
    assert check.response == "3 recorded conversations"


async def test_many_runs_over_a_large_recording_are_quick(pool: HttpPool, folder: Path):
    write(
        folder / "large.jsonl",
        *(
            {
                "messages": [
                    said("user", "Hi"),
                    said("assistant", "Yes?"),
                    said("user", f"n{i}"),
                    said("assistant", f"a{i}"),
                ]
            }
            for i in range(2_000)
        ),
    )
    for i in (0, 999, 1_999):
        messages, _ = await talk(session(pool, folder, file="large.jsonl"), "Hi", f"n{i}")
        assert messages[-1].text == f"a{i}"
