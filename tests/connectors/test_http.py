"""The ``http`` connector: what goes out by template, what comes back by path."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.agent_server import AgentServer, Answer, says
from tests.support.sessions import ask, session_of, settings_of, talk, user

from evalstudio.base.problems import InvalidInput
from evalstudio.connectors.contract import ConnectorError, RunInfo
from evalstudio.connectors.http import http_agent
from evalstudio.connectors.http_pool import HttpPool
from evalstudio.messages import Message, TokensUsage, tool_calls_of

SENT = [{"role": "user", "content": "Hi"}]


async def sent_with(pool: HttpPool, agent: AgentServer, template: Any, text: str = "Hi") -> Any:
    run = RunInfo(id="run-7")
    await ask(session_of(http_agent, pool, {"requestTemplate": template}, url=agent.url, run=run), text)
    return agent.last.body


async def test_by_default_the_whole_conversation_and_the_thread_go_out(pool: HttpPool, agent: AgentServer):
    agent.answers = says("Hello!", threadId="t-1")
    await talk(session_of(http_agent, pool, url=agent.url), "Hi", "And now?")
    first, second = (request.body for request in agent.requests)
    assert first == {"messages": SENT, "threadId": None}
    assert [message["content"] for message in second["messages"]] == ["Hi", "Hello!", "And now?"]
    assert second["threadId"] == "t-1"
    assert agent.last.headers["content-type"] == "application/json"
    assert agent.last.headers["user-agent"].startswith("evalstudio/")


@pytest.mark.parametrize(
    ("template", "body"),
    [
        ("{{message}}", "Hi"),
        ({"q": "{{message}}"}, {"q": "Hi"}),
        ({"q": "{{ message }}!"}, {"q": "Hi!"}),
        ({"all": "{{messages}}"}, {"all": SENT}),
        ({"new": ["{{newMessages}}"]}, {"new": [SENT]}),
        ({"id": "{{runId}}/{{turn}}", "n": "{{turn}}"}, {"id": "run-7/1", "n": 1}),
        ({"t": "{{threadId}}", "u": "t={{threadId}}"}, {"t": None, "u": "t="}),
        ({"text": "say {{messages}}"}, {"text": 'say [{"role":"user","content":"Hi"}]'}),
        ({"a": {"b": [1, None, {"c": "{{message}}"}]}}, {"a": {"b": [1, None, {"c": "Hi"}]}}),
        ({"fixed": {"x": 1}}, {"fixed": {"x": 1}}),
        ([], []),
        ({"odd": "{ {message} } {message}"}, {"odd": "{ {message} } {message}"}),
    ],
)
async def test_a_template_is_filled_in(pool: HttpPool, agent: AgentServer, template: Any, body: Any):
    assert await sent_with(pool, agent, template) == body


async def test_what_is_filled_in_is_never_filled_in_again(pool: HttpPool, agent: AgentServer):
    sent = await sent_with(pool, agent, {"a": "{{message}}", "b": "<{{message}}>"}, "{{runId}} {{nope}}")
    assert sent == {"a": "{{runId}} {{nope}}", "b": "<{{runId}} {{nope}}>"}


async def test_the_message_is_the_last_new_one_of_the_user(pool: HttpPool, agent: AgentServer):
    session = session_of(http_agent, pool, {"requestTemplate": {"q": "{{message}}"}}, url=agent.url)
    said = [user("first"), Message(role="assistant", content="a"), user("second"), Message(role="tool")]
    await session.invoke(said, said[1:])
    assert agent.last.body == {"q": "second"}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"requestTemplate": "{{}}"}, "is not known here"),
        ({"responsePath": "a..b"}, "is not a path"),
        ({"responsePath": "a[x]"}, "stuck at"),
        ({"toolCallsPath": "a["}, "is not a path"),
        ({"method": "GET"}, "GET needs a requestTemplate"),
        ({"method": "DELETE"}, "method"),
        ({"timeoutSeconds": 0}, "timeoutSeconds"),
        ({"maxResponseBytes": 0}, "maxResponseBytes"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_a_bad_config_is_refused_when_it_is_loaded(config: dict[str, Any], words: str):
    with pytest.raises(InvalidInput) as caught:
        settings_of(http_agent, config)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("path", "answer", "texts"),
    [
        ("", "plain text", ["plain text"]),
        ("", {"role": "assistant", "content": "whole"}, ["whole"]),
        ("", {"messages": ["a", {"role": "tool", "content": "b"}]}, ["a", "b"]),
        ("", {"message": "m"}, ["m"]),
        ("reply.text", {"reply": {"text": "deep"}}, ["deep"]),
        ("choices[0].message", {"choices": [{"message": {"role": "assistant", "content": "c"}}]}, ["c"]),
        ("$.items[-1]", {"items": ["first", "last"]}, ["last"]),
        ('["odd key"][0]', {"odd key": ["x"]}, ["x"]),
        ("['dotted.key']", {"dotted.key": "y"}, ["y"]),
        ("out", {"out": {"content": "no role"}}, ["no role"]),
        ("out", {"out": [{"role": "assistant", "content": "one"}, "two"]}, ["one", "two"]),
        ("grüße", {"grüße": "schön 🎉"}, ["schön 🎉"]),
    ],
)
async def test_the_reply_is_found_by_its_path(
    pool: HttpPool, agent: AgentServer, path: str, answer: Any, texts: list[str]
):
    agent.answers = Answer(json=answer)
    reply = await ask(session_of(http_agent, pool, {"responsePath": path}, url=agent.url))
    assert [message.text for message in reply.messages] == texts


@pytest.mark.parametrize("answer", [{"other": 1}, {"reply": None}, {"reply": []}, [], None, {"reply": "x"}])
async def test_a_path_that_leads_nowhere_is_an_error(pool: HttpPool, agent: AgentServer, answer: Any):
    agent.answers = Answer(json=answer)
    with pytest.raises(ConnectorError, match=r'wrong shape: nothing is at "reply\.text" in'):
        await ask(session_of(http_agent, pool, {"responsePath": "reply.text"}, url=agent.url))


async def test_something_else_at_the_path_is_an_error(pool: HttpPool, agent: AgentServer):
    agent.answers = Answer(json={"reply": {"answer": 42, "pad": "x" * 10_000}})
    with pytest.raises(ConnectorError, match='what is at "reply" is no text') as caught:
        await ask(session_of(http_agent, pool, {"responsePath": "reply"}, url=agent.url))
    assert len(str(caught.value)) < 500


async def test_tool_calls_usage_and_thread_are_read_by_their_paths(pool: HttpPool, agent: AgentServer):
    agent.answers = Answer(
        json={
            "text": "Looking.",
            "calls": [{"name": "find", "args": {"id": 42}, "id": "c1"}],
            "meta": {"tokens": {"inputTokens": 5, "outputTokens": 2}, "session": 17},
        }
    )
    config = {
        "responsePath": "text",
        "toolCallsPath": "calls",
        "usagePath": "meta.tokens",
        "threadIdPath": "meta.session",
    }
    reply = await ask(session_of(http_agent, pool, config, url=agent.url))
    (message,) = reply.messages
    assert message.text == "Looking."
    assert message.tool_calls is not None
    assert message.tool_calls[0].name == "find"
    assert message.tool_calls[0].arguments() == {"id": 42}
    assert reply.tokens_usage == TokensUsage(input_tokens=5, output_tokens=2, total_tokens=7)
    assert reply.thread_id == "17"


async def test_tool_calls_alone_are_an_answer(pool: HttpPool, agent: AgentServer):
    agent.answers = Answer(json={"calls": [{"name": "find"}]})
    config = {"responsePath": "text", "toolCallsPath": "calls"}
    (message,) = (await ask(session_of(http_agent, pool, config, url=agent.url))).messages
    assert message.role == "assistant"
    assert message.tool_calls is not None


async def test_calls_by_path_stand_beside_those_of_the_message(pool: HttpPool, agent: AgentServer):
    own = {"role": "assistant", "content": "Ok", "tool_calls": [{"name": "refund"}]}
    agent.answers = Answer(json={"message": own, "calls": [{"name": "find"}, {"name": "refund"}]})
    config = {"responsePath": "message", "toolCallsPath": "calls"}
    (message,) = (await ask(session_of(http_agent, pool, config, url=agent.url))).messages
    assert [call.name for call in message.tool_calls or ()] == ["refund", "find"]


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        (
            "candidates[0].content",
            {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}}]},
        ),
        (
            "output",
            {"output": [{"type": "reasoning"}, {"type": "function_call", "name": "f", "arguments": "{}"}]},
        ),
        ("", {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}),
    ],
)
async def test_answers_of_other_providers_are_read(
    pool: HttpPool, agent: AgentServer, path: str, answer: Any
):
    agent.answers = Answer(json=answer)
    reply = await ask(session_of(http_agent, pool, {"responsePath": path}, url=agent.url))
    assert [call.name for call in tool_calls_of(reply.messages)] == ["f"]


@pytest.mark.parametrize(
    ("usage", "words"),
    [({}, "holds no count"), ("many", "not an object"), ({"input_tokens": "many"}, "not a number of tokens")],
)
async def test_a_usage_that_cannot_be_used_is_missing(
    pool: HttpPool, agent: AgentServer, usage: Any, words: str
):
    agent.answers = says("Ok", usage=usage)
    reply = await ask(session_of(http_agent, pool, url=agent.url))
    assert reply.tokens_usage is None
    assert words in str(reply.usage_missing)


async def test_an_answer_that_reports_a_failure_is_one_wherever_the_reply_is(
    pool: HttpPool, agent: AgentServer
):
    agent.answers = Answer(json={"success": False, "error": "no beds", "data": {"text": "Fine."}})
    with pytest.raises(ConnectorError, match="no beds"):
        await ask(session_of(http_agent, pool, {"responsePath": "data.text"}, url=agent.url))


async def test_an_empty_reply_may_be_allowed(pool: HttpPool, agent: AgentServer):
    agent.answers = Answer(json={"text": ""})
    config = {"responsePath": "text", "allowEmpty": True}
    assert (await ask(session_of(http_agent, pool, config, url=agent.url))).messages[0].text == ""


@pytest.mark.parametrize(
    ("calls", "words"),
    [("none", "is no list of tool calls"), ([{"args": {}}], "not valid"), ([3], "not valid")],
)
async def test_malformed_tool_calls_are_an_error(pool: HttpPool, agent: AgentServer, calls: Any, words: str):
    agent.answers = Answer(json={"text": "x", "calls": calls})
    config = {"responsePath": "text", "toolCallsPath": "calls"}
    with pytest.raises(ConnectorError, match=words):
        await ask(session_of(http_agent, pool, config, url=agent.url))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_the_method_and_the_path_are_as_configured(pool: HttpPool, agent: AgentServer, method: str):
    config = {"method": method, "path": "v2/chat?mode=test"}
    await ask(session_of(http_agent, pool, config, url=f"{agent.url}/api/?key=1"))
    assert (agent.last.method, agent.last.path) == (method, "/api/v2/chat")
    assert agent.last.query == {"key": "1", "mode": "test"}


async def test_get_sends_the_template_as_the_query(pool: HttpPool, agent: AgentServer):
    config = {"method": "GET", "path": "ask", "requestTemplate": {"q": "{{message}}", "n": "{{turn}}"}}
    await ask(session_of(http_agent, pool, config, url=agent.url), "a & b = ü?")
    assert agent.last.query == {"q": "a & b = ü?", "n": "1"}
    assert agent.last.body is None


async def test_a_configured_content_type_wins(pool: HttpPool, agent: AgentServer):
    session = session_of(http_agent, pool, url=agent.url, headers={"content-type": "application/vnd.x+json"})
    await ask(session)
    assert agent.last.headers["content-type"] == "application/vnd.x+json"


async def test_a_long_conversation_with_unicode_goes_out_unharmed(pool: HttpPool, agent: AgentServer):
    said = [user("ß🎉" * 10_000) for _ in range(50)]
    await session_of(http_agent, pool, url=agent.url).invoke(said, said[-1:])
    assert agent.last.body["messages"] == [message.to_json() for message in said]
