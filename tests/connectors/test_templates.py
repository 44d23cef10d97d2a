"""Request templates take the values of the case and of the environment, and name what they do not know."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.agent_server import AgentServer, Answer
from tests.support.sessions import ask, session_of

from evalstudio import run_scenario
from evalstudio.base.problems import InvalidInput
from evalstudio.connectors.contract import ConnectorError, RunInfo
from evalstudio.connectors.http import http_agent
from evalstudio.connectors.http_pool import HttpPool

VALUES: dict[str, Any] = {"name": "Ada", "order": {"id": 7, "items": ["a", "b"]}, "vip": True, "none": None}


async def sent(pool: HttpPool, agent: AgentServer, template: Any, text: str = "Hi", **config: Any) -> Any:
    run = RunInfo(id="run-7", case_values=VALUES)
    config = {"requestTemplate": template, **config}
    await ask(session_of(http_agent, pool, config, url=agent.url, run=run), text)
    return agent.last.body


@pytest.mark.parametrize(
    ("template", "body"),
    [
        ({"q": "{{name}}"}, {"q": "Ada"}),
        ({"q": "for {{ name }}: {{message}}"}, {"q": "for Ada: Hi"}),
        ({"n": "{{order.id}}", "all": "{{order}}"}, {"n": 7, "all": VALUES["order"]}),
        (["{{order.items[-1]}}", "{{vip}}", "{{none}}"], ["b", True, None]),
        ({"text": "{{order.items}} {{vip}} {{none}}!"}, {"text": '["a","b"] true !'}),
        ({"s": "{{sessionId}}"}, {"s": RunInfo(id="run-7").session_id}),
        ({"turn": "{{turn}}", "odd": "{ {name} } {{{name}"}, {"turn": 1, "odd": "{ {name} } {{{name}"}),
    ],
)
async def test_values_of_the_case_are_filled_in_with_their_types(
    pool: HttpPool, agent: AgentServer, template: Any, body: Any
) -> None:
    assert await sent(pool, agent, template) == body


async def test_what_a_user_says_is_never_filled_in(
    pool: HttpPool, agent: AgentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_SECRET", "{{name}}")
    body = await sent(pool, agent, {"q": "{{message}} ${AGENT_SECRET}"}, "{{name}} ${AGENT_SECRET}")
    assert body == {"q": "{{name}} ${AGENT_SECRET} {{name}}"}


async def test_variables_of_the_environment_are_filled_in_and_kept_out_of_errors(
    pool: HttpPool, agent: AgentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_SECRET", "hush-hush")
    template = {"auth": {"key": "${AGENT_SECRET}", "user": "me:${AGENT_SECRET}"}}
    assert await sent(pool, agent, template) == {"auth": {"key": "hush-hush", "user": "me:hush-hush"}}
    agent.answers = Answer(status=400, json={"detail": "bad key hush-hush"})
    with pytest.raises(ConnectorError) as caught:
        await sent(pool, agent, template)
    assert "bad key ***" in str(caught.value)


async def test_an_unset_variable_is_named(pool: HttpPool, agent: AgentServer) -> None:
    with pytest.raises(ConnectorError, match="request template refers to the environment variable NOT_SET"):
        await sent(pool, agent, {"key": "${NOT_SET}"})
    assert agent.requests == []


async def test_a_value_the_case_does_not_have_is_named_with_those_it_has(
    pool: HttpPool, agent: AgentServer
) -> None:
    with pytest.raises(ConnectorError) as caught:
        await sent(pool, agent, {"q": "{{nmae}}"})
    assert "{{nmae}} in the request template has no value; known are message, messages" in str(caught.value)
    assert "of the case: name, none, order, vip" in str(caught.value)
    assert agent.requests == []


async def test_a_get_request_takes_values_too(pool: HttpPool, agent: AgentServer) -> None:
    await sent(pool, agent, {"q": "{{name}}", "id": "{{order.id}}"}, method="GET")
    assert agent.last.query == {"q": "Ada", "id": "7"}


SCENARIO: dict[str, Any] = {
    "name": "Order",
    "script": ["Where is it?"],
    "cases": [{"name": "seven", "vars": {"order": 7}}],
    "evaluators": [{"type": "regex", "config": {"pattern": "Hello"}}],
}


async def test_a_scenario_sends_the_values_of_its_case(agent: AgentServer) -> None:
    template = {"id": "{{order}}", "q": "{{message}}"}
    connector = {"type": "http", "baseUrl": agent.url, "config": {"requestTemplate": template}}
    assert (await run_scenario(SCENARIO, connector)).passed
    assert agent.last.body == {"id": 7, "q": "Where is it?"}


async def test_a_template_that_the_case_cannot_fill_is_refused_before_the_agent_is_called(
    agent: AgentServer,
) -> None:
    template = {"id": "{{ordre}}"}
    connector = {"type": "http", "baseUrl": agent.url, "config": {"requestTemplate": template}}
    with pytest.raises(
        InvalidInput,
        match=r"config\.requestTemplate: \{\{ordre\}\} has no value in this case",
    ):
        await run_scenario(SCENARIO, connector)
    assert agent.requests == []
