"""Cassettes: what is recorded comes back, what is not is told, and a whole run needs nobody."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.llm.opened import KEY
from tests.support.agent_server import AgentServer, Recorded, says
from tests.support.model_server import ModelServer

from evalstudio.base.json_text import json_text
from evalstudio.cassettes import Cassette, CassetteError, CassetteMiss
from evalstudio.connectors.cassette_session import open_session
from evalstudio.connectors.contract import ConnectorSettings, RunInfo
from evalstudio.connectors.http import http_agent
from evalstudio.connectors.http_pool import HttpPool
from evalstudio.conversation.definitions import Persona, Scenario
from evalstudio.conversation.loop import converse, finished
from evalstudio.conversation.preparation import Services, prepare
from evalstudio.conversation.results import RunResult
from evalstudio.llm import Llm, LlmSettings
from evalstudio.plugins import create_registry


def asking(text: str, **more: Any) -> dict[str, Any]:
    return {"op": "chat", "model": "m", **more, "messages": [{"role": "user", "content": text}]}


def recorded(path: Path, *pairs: tuple[str, str], **more: Any) -> Path:
    with Cassette.record(path) as cassette:
        for asked, answer in pairs:
            cassette.keep("model", asking(asked), {"text": answer}, **more)
    return path


def text_in(path: Path) -> str:
    return path.read_text()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "folder" / "cassette.jsonl"


def test_what_was_recorded_is_found_by_what_was_asked_not_by_its_place(path: Path) -> None:
    cassette = Cassette.replay(recorded(path, ("a", "1"), ("b", "2"), ("ü🎉\u2028", "3")))
    assert cassette.replaying
    assert [cassette.find("model", asking(text))["text"] for text in ("ü🎉\u2028", "b", "a")] == [
        "3",
        "2",
        "1",
    ]


def test_the_order_of_keys_does_not_matter(path: Path) -> None:
    cassette = Cassette.replay(recorded(path, ("a", "1")))
    assert cassette.find("model", dict(reversed(asking("a").items())))["text"] == "1"


def test_a_model_is_not_asked_for_what_an_agent_said(path: Path) -> None:
    cassette = Cassette.replay(recorded(path, ("a", "1")))
    with pytest.raises(CassetteMiss, match="Nothing an agent said is recorded"):
        cassette.find("agent", asking("a"))


def test_answers_to_the_same_request_come_in_order_and_one_more_is_a_miss(path: Path) -> None:
    cassette = Cassette.replay(recorded(path, ("a", "1"), ("b", "x"), ("a", "2")))
    assert [cassette.find("model", asking("a"))["text"] for _ in range(2)] == ["1", "2"]
    with pytest.raises(CassetteMiss, match="recorded 2 times and is asked once more"):
        cassette.find("model", asking("a"))


@pytest.mark.parametrize("times", [1, 3])
def test_an_answer_that_was_always_the_same_is_given_for_ever(path: Path, times: int) -> None:
    cassette = Cassette.replay(recorded(path, *[("a", "1")] * times))
    assert {cassette.find("model", asking("a"))["text"] for _ in range(10)} == {"1"}


def test_each_run_gets_its_own_answers_whoever_asks_first(path: Path) -> None:
    for name in ("ann", "ben"):
        recorded(path, ("balance?", f"for {name}"), run_key=name)
    with Cassette.record(path) as cassette:
        for name in ("ann", "ben"):
            cassette.keep("model", asking("balance?"), {"text": f"for {name}"}, run_key=name)
    cassette = Cassette.replay(path)
    names = ("ben", "ann", "zoe")
    texts = [cassette.find("model", asking("balance?"), run_key=name)["text"] for name in names]
    assert texts == ["for ben", "for ann", "for ann"]


def test_a_file_of_an_earlier_release_is_read(path: Path) -> None:
    path.parent.mkdir(parents=True)
    lines = [
        {
            "kind": "model",
            "take": take,
            "asker": name,
            "key": "of old",
            "request": asking("a"),
            "response": answer,
        }
        for take, name, answer in (
            (1, "ann", {"text": "old"}),
            (2, "ann", {"text": "1"}),
            (2, "ben", {"text": "2"}),
        )
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    cassette = Cassette.replay(path)
    assert [cassette.find("model", asking("a"), run_key=name)["text"] for name in ("ben", "ann")] == [
        "2",
        "1",
    ]
    recorded(path, ("b", "3"), run_key="ann")
    last = json.loads(path.read_text().splitlines()[-1])
    assert (last["take"], last["asker"]) == (3, "ann")


def test_recording_again_replaces_what_is_asked_again_and_keeps_the_rest(path: Path) -> None:
    recorded(path, ("a", "old"), ("a", "older"), ("b", "kept"))
    cassette = Cassette.replay(recorded(path, ("a", "new")))
    assert [cassette.find("model", asking("a"))["text"] for _ in range(3)] == ["new"] * 3
    assert cassette.find("model", asking("b"))["text"] == "kept"


def test_what_is_kept_once_is_in_the_file_once(path: Path) -> None:
    recorded(path, ("a", "1"), ("a", "1"), ("b", "1"), once=True)
    assert len(path.read_text().splitlines()) == 2


def test_a_miss_says_what_was_asked_where_and_what_comes_nearest(path: Path) -> None:
    prompt = "You are a very careful judge of conversations. " * 40
    recorded(path, ("nothing like it", "0"), (prompt + "Was the second flight booked?", "1"), ("other", "2"))
    cassette = Cassette.replay(path)
    with pytest.raises(CassetteMiss) as caught:
        cassette.find("model", asking(prompt + "Was the third flight booked?"))
    told = str(caught.value)
    assert str(path) in told
    assert 'chat of m, last said "You are a very careful judge' in told
    assert "in line 2, differs first at messages[0].content: " in told
    assert 'conversations. Was the third flight booked?", recorded "' in told
    assert 'Was the second flight booked?"' in told
    assert len(told) < 700
    assert cassette.misses == [caught.value]


def test_after_many_misses_the_nearest_is_no_longer_looked_for(path: Path) -> None:
    cassette = Cassette.replay(recorded(path, ("a", "1")))
    told: list[str] = []
    for number in range(102):
        with pytest.raises(CassetteMiss) as caught:
            cassette.find("model", asking(f"new {number}"))
        told.append(str(caught.value))
    assert "differs first" in told[99]
    assert "Many others are missing too." in told[101]
    assert len(cassette.misses) == 100


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"model": "n"}, 'model: asked "n", recorded "m"'),
        ({"temperature": 0.5}, "temperature: asked 0.5, recorded nothing"),
        ({"messages": []}, "messages[0]: asked nothing, recorded {"),
        ({"messages": [{"role": "user", "content": "a"}, {"role": "user"}]}, "messages[1]: asked {"),
        ({"op": True}, 'op: asked true, recorded "chat"'),
    ],
)
def test_the_first_difference_has_its_place(path: Path, change: dict[str, Any], where: str) -> None:
    cassette = Cassette.replay(recorded(path, ("a", "1")))
    with pytest.raises(CassetteMiss) as caught:
        cassette.find("model", asking("a") | change)
    assert where in str(caught.value)


def test_a_torn_last_line_is_set_aside(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorded(path, ("a", "1"), ("b", "2"))
    os.truncate(path, path.stat().st_size - 7)
    cassette = Cassette.replay(path)
    assert "cassette.jsonl:2 is torn" in caplog.text
    assert cassette.find("model", asking("a"))["text"] == "1"
    with pytest.raises(CassetteMiss):
        cassette.find("model", asking("b"))


@pytest.mark.parametrize("cut", [1, 7])
def test_recording_goes_on_after_a_torn_line(path: Path, cut: int) -> None:
    recorded(path, ("a", "1"), ("b", "2"))
    os.truncate(path, path.stat().st_size - cut)
    cassette = Cassette.replay(recorded(path, ("c", "3")))
    assert cassette.find("model", asking("c"))["text"] == "3"
    assert len(path.read_bytes().splitlines()) == (3 if cut == 1 else 2)
    for line in path.read_bytes().splitlines():
        json.loads(line)


@pytest.mark.parametrize(
    "line", ["<<<<<<< HEAD", "[]", "{}", '{"kind":"model","request":{}}', '{"request":{},"response":{}}']
)
def test_what_is_no_cassette_is_refused_with_its_line_and_left_alone(path: Path, line: str) -> None:
    recorded(path, ("a", "1"))
    path.write_text(path.read_text() + f"{line}\n")
    before = path.read_bytes()
    for opened in (Cassette.replay, Cassette.record):
        with pytest.raises(CassetteError, match=r"cassette\.jsonl:2: not an exchange"):
            opened(path)
    assert path.read_bytes() == before


def test_a_missing_cassette_and_a_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match=r"none\.jsonl: no such cassette; record it first"):
        Cassette.replay(tmp_path / "none.jsonl")
    for opened in (Cassette.replay, Cassette.record):
        with pytest.raises(CassetteError, match="cannot be"):
            opened(tmp_path)


def test_an_empty_cassette_misses_everything(path: Path) -> None:
    with pytest.raises(CassetteMiss, match="Nothing a model said is recorded in it"):
        Cassette.replay(recorded(path)).find("model", {})


def test_only_one_process_records(path: Path) -> None:
    code = f"from evalstudio.cassettes import Cassette; Cassette.record({str(path)!r})"
    with Cassette.record(path):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is being recorded by another process" in done.stderr
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_replayed_cassette_is_never_written(path: Path) -> None:
    cassette = Cassette.replay(recorded(path, ("a", "1")))
    with pytest.raises(CassetteError, match="is being replayed"):
        cassette.keep("model", {}, {})


def test_secrets_are_blotted_out_and_found_again_without_them(path: Path) -> None:
    with Cassette.record(path) as cassette:
        cassette.hide(["hunter2-hunter2", "hunter2-hunter2-longer", "tiny", None, 'quo"ted\\secret'])
        cassette.keep(
            "model", asking("my key is hunter2-hunter2-longer"), {"text": ['quo"ted\\secret, tiny']}
        )
    text = path.read_text()
    assert "hunter2" not in text
    assert "ted" not in text.replace("recorded", "")
    cassette = Cassette.replay(path)
    assert cassette.find("model", asking("my key is ***"))["text"] == ["***, tiny"]
    cassette.hide(["hunter2-hunter2-longer"])
    assert cassette.find("model", asking("my key is hunter2-hunter2-longer"))["text"] == ["***, tiny"]


def test_ugly_values_are_recorded(path: Path) -> None:
    ugly = {
        "half": "\ud83d",
        "huge": 10**30,
        "odd": {1: Path("x")},
        "nan": float("nan"),
        "long": "x" * 2_000_000,
    }
    with Cassette.record(path) as cassette:
        cassette.keep("agent", ugly, {"text": "\udc00", "n": 10**30})
    assert Cassette.replay(path).find("agent", ugly) == {"text": "?", "n": 1e30}


def test_threads_record_whole_lines_and_replay_each_answer_once(path: Path) -> None:
    with Cassette.record(path) as cassette, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: cassette.keep("model", asking("same" * 500), {"n": n}), range(400)))
    cassette = Cassette.replay(path)
    with ThreadPoolExecutor(8) as pool:
        heard = list(pool.map(lambda _: cassette.find("model", asking("same" * 500))["n"], range(400)))
    assert sorted(heard) == list(range(400))


# A whole run: an agent over HTTP, a simulated user and a judge.

SCENARIO = Scenario(
    name="Booking",
    script=["I need a flight."],
    max_messages=4,
    success_criteria="A reference is given",
    evaluators=[{"type": "regex", "config": {"pattern": "REF-1"}, "gate": "eventually"}],  # pyright: ignore[reportArgumentType]
)
PERSONA = Persona(name="Ann", headers={"X-Api-Token": "${ANN_TOKEN}"})
TOKEN = "ann-token-0123456789"


def agent_says(request: Recorded) -> Any:
    turn = len(request.body["messages"])
    return says(f"REF-1 for {TOKEN}" if turn > 1 else "Which day?", usage={"input": 3, "output": 4})


def model_says(request: Any) -> dict[str, Any]:
    if any("You play a person" in text for text in request.texts):
        return {"message": "Tomorrow.", "stop": False}
    met = "REF-1" in request.texts[-1]
    return {"reasoning": f"met: {met}", "evidence": ["REF-1"], "success_met": met, "confidence": 0.9}


def settings_at(url: str) -> LlmSettings:
    return LlmSettings.model_validate(
        {
            "apiKey": "${MODEL_KEY}",
            "baseUrl": url,
            "models": {"evaluation": "gpt-4o", "persona": "gpt-4o"},
        }
    )


async def run(agent_url: str, model_url: str, cassette: Cassette, repetitions: int = 1) -> list[RunResult]:
    registry = create_registry()
    plan = prepare(SCENARIO, registry, persona=PERSONA, has_model=True)
    settings: ConnectorSettings[Any] = ConnectorSettings(
        http_agent.config.parse("http", {"timeoutSeconds": 5}),
        agent_url,
        {"Authorization": "Bearer ${BEARER}"},
    )
    async with HttpPool() as pool, Llm(settings_at(model_url), cassette=cassette) as llm:

        async def one(number: int) -> RunResult:
            session = open_session(
                http_agent,
                settings,
                pool=pool,
                run=RunInfo(id=f"run-{number}"),
                extra_headers=PERSONA.headers,
                cassette=cassette,
                run_key=f"Booking/Ann/{number}",
            )
            return await finished(converse(plan, session, Services(llm, llm)))

        return list(await asyncio.gather(*(one(number) for number in range(repetitions))))


def shown(results: list[RunResult]) -> str:
    """The results whole, but for the time our own evaluators took this time."""
    return re.sub(
        r'"duration(_ms|Ms)":[^,}]+', "", json_text([dataclasses.asdict(result) for result in results])
    )


async def test_a_run_replays_without_servers_keys_or_differences(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {"ANN_TOKEN": TOKEN, "MODEL_KEY": KEY, "BEARER": "bearer-0123456789"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    async with AgentServer(agent_says) as agent, ModelServer(model_says) as model:
        with Cassette.record(path) as cassette:
            (first,) = await run(agent.url, model.url, cassette)
    assert first.passed
    assert [m.text for m in first.messages][-2:] == ["Tomorrow.", "REF-1 for ***"]
    assert len(agent.requests) == 2
    for name in secrets:
        monkeypatch.delenv(name)
    assert not [hidden for hidden in (*secrets.values(), "Authorization", "X-Api") if hidden in text_in(path)]

    again = [await run(agent.url, model.url, Cassette.replay(path)) for _ in range(2)]
    assert shown(again[0]) == shown(again[1])
    assert TOKEN not in shown([first])
    assert shown(again[0]) == shown([first])


async def test_many_replays_at_once_tell_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANN_TOKEN", TOKEN)
    monkeypatch.setenv("MODEL_KEY", KEY)
    monkeypatch.setenv("BEARER", "bearer-0123456789")
    async with AgentServer(agent_says) as agent, ModelServer(model_says) as model:
        with Cassette.record(path) as cassette:
            recorded_runs = await run(agent.url, model.url, cassette, repetitions=10)
    cassette = Cassette.replay(path)
    replayed = await run(agent.url, model.url, cassette, repetitions=10)
    assert shown(replayed) == shown(recorded_runs)
    assert not cassette.misses


async def test_a_changed_criterion_is_a_miss_with_the_difference(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANN_TOKEN", TOKEN)
    monkeypatch.setenv("MODEL_KEY", KEY)
    monkeypatch.setenv("BEARER", "bearer-0123456789")
    async with AgentServer(agent_says) as agent, ModelServer(model_says) as model:
        with Cassette.record(path) as cassette:
            await run(agent.url, model.url, cassette)
    monkeypatch.setattr(SCENARIO, "success_criteria", "A reference is named")
    cassette = Cassette.replay(path)
    (result,) = await run(agent.url, model.url, cassette)
    assert result.outcome == "error"
    assert "A reference is named" in result.reason
    assert "A reference is given" in result.reason
    assert len(cassette.misses) == 2
