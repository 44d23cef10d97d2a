"""Several attempts at a call are kept and can be set; limits belong to a connector's type or its config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from tests.support.agent_server import AgentServer, Answer, says
from tests.support.sessions import ask, connector_of, session_of, settings_of, talk

from evalstudio import run_scenario
from evalstudio.base.problems import InvalidInput
from evalstudio.cassettes import Cassette
from evalstudio.connectors.cassette_session import open_session
from evalstudio.connectors.connection import CallPolicy
from evalstudio.connectors.contract import (
    ConnectorContext,
    ConnectorError,
    ConnectorResponse,
    RunInfo,
    define_connector,
)
from evalstudio.connectors.http import http_agent
from evalstudio.connectors.http_pool import HttpPool

Context = ConnectorContext[Any]
BUSY = Answer(status=429, headers={"Retry-After": "0.01"}, json={"error": "slow down"})
ANY_TEXT = {"type": "regex", "config": {"pattern": "."}}


async def test_every_attempt_is_kept_with_its_error_and_its_wait(pool: HttpPool) -> None:
    async with AgentServer([BUSY, BUSY, says("ok"), says("again")]) as agent:
        session = session_of(http_agent, pool, url=agent.url)
        first, second = (await talk(session, "one", "two"))[1]
    assert [attempt.number for attempt in first.attempts] == [1, 2, 3]
    assert [attempt.retry_after for attempt in first.attempts] == [0.01, 0.01, None]
    assert all("too many requests (429)" in str(attempt.error) for attempt in first.attempts[:2])
    assert all((attempt.wait_ms or 0) >= 10 for attempt in first.attempts[:2])
    assert (first.attempts[2].error, first.attempts[2].wait_ms) == (None, None)
    assert second.attempts == []


async def test_the_error_of_a_call_that_is_given_up_has_all_attempts_without_secrets(pool: HttpPool) -> None:
    headers = {"Authorization": "Bearer s3cret-token"}
    echo = Answer(status=429, headers={"Retry-After": "0"}, json={"sent": "Bearer s3cret-token"})
    async with AgentServer(echo) as agent:
        with pytest.raises(ConnectorError) as caught:
            await ask(session_of(http_agent, pool, url=agent.url, headers=headers))
    assert [attempt.number for attempt in caught.value.attempts] == [1, 2, 3]
    assert "s3cret" not in str([attempt.error for attempt in caught.value.attempts])


async def test_the_turns_of_a_run_have_their_attempts() -> None:
    async with AgentServer([BUSY, says("ok"), says("ok")]) as agent:
        connector = {"type": "http", "baseUrl": agent.url}
        scenario = {"name": "s", "script": ["one", "two"], "evaluators": [{"type": "token-usage"}, ANY_TEXT]}
        result = await run_scenario(scenario, connector)
    first, second = (turn.to_json() for turn in result.turns)
    assert [sorted(attempt) for attempt in first["attempts"]] == [
        ["error", "number", "retryAfter", "waitMs"],
        ["number"],
    ]
    assert "attempts" not in second


@pytest.mark.parametrize("hook", ["setup", "state"])
async def test_hooks_follow_the_same_rule_and_their_attempts_are_kept(hook: str) -> None:
    calls: list[str] = []

    @define_connector(type="hooked", retry={"attempts": 2})
    async def agent(ctx: Context) -> str:
        return "ok"

    async def hiccup(ctx: Context) -> None:
        calls.append(hook)
        if len(calls) == 1:
            raise ConnectionRefusedError("not yet")

    getattr(agent, hook)(hiccup)
    result = await run_scenario({"name": "s", "script": ["x"], "evaluators": [ANY_TEXT]}, agent)
    assert result.passed
    first, second = (attempt.error for attempt in result.hook_attempts[hook])
    assert str(first).startswith("ConnectionRefusedError: not yet (")
    assert second is None
    assert result.output()["hookAttempts"][hook][0]["number"] == 1


def failing(**limits: Any) -> tuple[Any, list[int]]:
    calls: list[int] = []

    @define_connector(type="limited", **limits)
    async def agent(ctx: Context) -> str:
        calls.append(1)
        raise ConnectorError("busy", again=True)

    return agent, calls


@pytest.mark.parametrize(
    ("of_type", "config", "attempts"),
    [
        ({}, {}, 3),
        ({"retry": {"attempts": 2}}, {}, 2),
        ({"retry": {"attempts": 2}}, {"retry": {"attempts": 4}}, 4),
        ({}, {"retry": {"attempts": 1}}, 1),
        ({}, {"retry": {"on": [429]}}, 3),
    ],
)
async def test_the_attempts_are_those_of_the_config_else_of_the_type(
    pool: HttpPool, of_type: dict[str, Any], config: dict[str, Any], attempts: int
) -> None:
    agent, calls = failing(**of_type)
    with pytest.raises(ConnectorError):
        await ask(session_of(agent, pool, config))
    assert len(calls) == attempts


class Own(BaseModel):
    language: str = "en"


class OwnTimeout(BaseModel):
    timeout_seconds: int = 7


@pytest.mark.parametrize(
    "shape", [None, Own, {"type": "object", "properties": {"language": {"type": "string"}}}]
)
def test_every_connector_takes_limits_in_its_config_beside_its_own_settings(shape: Any) -> None:
    agent = define_connector(type="mine", config=shape, timeout=5)(lambda ctx: "ok")
    settings = settings_of(agent, {"timeoutSeconds": 2, "retry": {"attempts": 5, "on": ["5xx"]}})
    policy = CallPolicy().for_config(settings.config)
    assert (policy.timeout_seconds, policy.attempts, policy.retry_on) == (2, 5, {"5xx"})
    for wrong in ({"timeoutSeconds": 0}, {"retry": {"on": ["often"]}}, {"retry": {"tries": 1}}):
        with pytest.raises(InvalidInput):
            settings_of(agent, wrong)


def test_a_config_keeps_its_own_meaning_of_a_limit() -> None:
    agent = define_connector(type="mine", config=OwnTimeout)(lambda ctx: "ok")
    settings = settings_of(agent, {"timeout_seconds": 9})
    assert isinstance(settings.config, OwnTimeout)
    assert CallPolicy().for_config(settings.config).timeout_seconds == 9


async def test_a_type_may_have_a_timeout_of_its_own(pool: HttpPool) -> None:
    async def hang(ctx: Context) -> str:
        import asyncio

        await asyncio.sleep(60)
        return "never"

    agent = define_connector(type="slow", timeout=0.1)(hang)
    with pytest.raises(ConnectorError, match=r"within 0\.1 s"):
        await ask(session_of(agent, pool))
    with pytest.raises(ConnectorError, match=r"within 0\.2 s"):
        await ask(session_of(agent, pool, {"timeoutSeconds": 0.2}))


@pytest.mark.parametrize("limits", [{"timeout": 0}, {"timeout": "long"}, {"retry": {"attempts": 0}}])
def test_limits_of_a_type_are_checked_where_it_is_defined(limits: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        define_connector(type="x", **limits)


async def test_the_session_id_is_there_from_set_up_on_and_differs_from_run_to_run(pool: HttpPool) -> None:
    seen: list[str] = []

    @define_connector(type="mine")
    async def agent(ctx: Context) -> str:
        seen.append(ctx.run.session_id)
        return "ok"

    @agent.setup
    async def prepare(ctx: Context) -> None:
        seen.append(ctx.run.session_id)

    for number in (1, 2):
        session = session_of(agent, pool, run=RunInfo(id=f"run-{number}"))
        await session.setup()
        await talk(session, "one", "two")
    assert [len(set(seen[:3])), len(set(seen[3:])), len(set(seen))] == [1, 1, 2]
    assert RunInfo(id="run-1").session_id == seen[0]


async def test_metadata_is_seen_by_evaluators_and_kept_with_the_turn() -> None:
    from evalstudio import EvaluatorContext, define_evaluator

    seen: list[Any] = []

    @define_evaluator(type="looks")
    def looks(ctx: EvaluatorContext) -> bool:  # pyright: ignore[reportMissingTypeArgument]
        seen.append(dict(ctx.last_invocation.metadata))
        ctx.last_invocation.metadata["model"] = "changed"
        return True

    def agent(ctx: Context) -> ConnectorResponse:
        metadata = {"model": f"m{ctx.run.turn}"} if ctx.run.turn < 3 else {}
        return ConnectorResponse(
            [{"role": "assistant", "content": "x"}], metadata=metadata, first_token_ms=12
        )

    scenario = {"name": "s", "script": ["a", "b", "c"], "evaluators": [looks.use()]}
    result = await run_scenario(scenario, agent)
    assert seen == [{"model": "m1"}, {"model": "m2"}, {}]
    assert [turn.to_json().get("metadata") for turn in result.turns] == [
        {"model": "m1"},
        {"model": "m2"},
        None,
    ]
    assert [turn.first_token_ms for turn in result.turns] == [12, 12, 12]


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"big": "x" * 70_000}, "the metadata of the answer takes 70,010 bytes; the limit is 64,000"),
        ({"path": Path("x")}, "the metadata of the answer is not JSON"),
        ({1: "x"}, "the metadata of the answer is not JSON"),
    ],
)
async def test_metadata_that_cannot_be_kept_is_a_fault(
    pool: HttpPool, metadata: dict[Any, Any], words: str
) -> None:
    async def agent(ctx: Context) -> ConnectorResponse:
        return ConnectorResponse([{"role": "assistant", "content": "x"}], metadata=metadata)

    with pytest.raises(ConnectorError, match=words):
        await ask(session_of(connector_of(agent), pool))


async def test_attempts_metadata_and_first_token_are_played_back_from_a_cassette(
    pool: HttpPool, tmp_path: Path
) -> None:
    calls: list[int] = []

    @define_connector(type="mine", retry={"attempts": 2})
    async def agent(ctx: Context) -> ConnectorResponse:
        calls.append(1)
        if len(calls) == 1 or ctx.messages[-1].text == "break":
            raise ConnectorError("busy", again=True)
        return ConnectorResponse(
            [{"role": "assistant", "content": "x"}], metadata={"model": "m"}, first_token_ms=5
        )

    def session(cassette: Cassette) -> Any:
        settings = settings_of(agent)
        return open_session(agent, settings, pool=pool, run=RunInfo(id="r"), cassette=cassette)

    async def heard(cassette: Cassette) -> tuple[Any, Any]:
        opened = session(cassette)
        reply = await ask(opened)
        with pytest.raises(ConnectorError) as caught:
            await ask(opened, "break")
        return reply, caught.value.attempts

    with Cassette.record(tmp_path / "c.jsonl") as cassette:
        live = await heard(cassette)
    replayed = await heard(Cassette.replay(tmp_path / "c.jsonl"))
    assert replayed == live
    assert (len(live[0].attempts), live[0].metadata, live[0].first_token_ms) == (2, {"model": "m"}, 5)
    assert len(live[1]) == 2
