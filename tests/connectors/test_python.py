"""The ``python`` connector calls functions of listed modules only; in code any callable is a connector."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.sessions import ask, session_of, settings_of

from evalstudio.base.problems import InvalidInput
from evalstudio.connectors.contract import ConnectorContext, ConnectorError
from evalstudio.connectors.http_pool import HttpPool
from evalstudio.connectors.python import callable_connector, python_agent
from evalstudio.messages import Message

AGENT = """
import time
from os import system
from evalstudio import ConnectorContext

def echo(messages):
    return f"You said {messages[-1].text}"

async def echo_later(messages):
    return f"Later: {messages[-1].text}"

def by_name(ctx):
    return f"{ctx.run.id} turn {ctx.run.turn}"

def by_annotation(call: "ConnectorContext"):
    return f"{call.run.id} turn {call.run.turn}"

def fail(messages):
    raise LookupError("no such city")

def hang(messages):
    time.sleep(1.5)

not_a_function = 3
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "booking_agent.py").write_text(AGENT)
    (tmp_path / "broken_agent.py").write_text("import no_such_library")
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    for name in ("booking_agent", "broken_agent"):
        sys.modules.pop(name, None)


def session(pool: HttpPool, folder: Path | None, function: str, **more: Any) -> Any:
    modules = ("booking_agent", "broken_agent", "missing_agent")
    config = {"function": function, **more}
    return session_of(python_agent, pool, config, folder=folder, modules=modules)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("echo", "You said Hi"),
        ("echo_later", "Later: Hi"),
        ("by_name", "run-1 turn 1"),
        ("by_annotation", "run-1 turn 1"),
    ],
)
async def test_a_function_is_called_with_what_it_asks_for(
    pool: HttpPool, project: Path, name: str, text: str
):
    reply = await ask(session(pool, project, f"booking_agent:{name}"))
    assert reply.messages[0].text == text


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("os:system", 'the module "os" is not allowed'),
        ("subprocess:run", 'the module "subprocess" is not allowed'),
        ("booking_agent.sub:echo", "is not allowed"),
        ("booking_agent:system", "comes from the module"),
        ("booking_agent:time", 'has no function "time"'),
        ("booking_agent:missing", 'has no function "missing"'),
        ("booking_agent:not_a_function", "has no function"),
        ("broken_agent:echo", "cannot be imported: ModuleNotFoundError"),
        ("missing_agent:echo", "cannot be imported: ModuleNotFoundError"),
        ("booking_agent:fail", "LookupError: no such city"),
    ],
)
async def test_what_may_not_or_cannot_be_called_is_refused(
    pool: HttpPool, project: Path, function: str, words: str
):
    with pytest.raises(ConnectorError) as caught:
        await ask(session(pool, project, function))
    assert words in str(caught.value)
    assert 'Connector "python"' in str(caught.value)


async def test_without_a_project_nothing_is_allowed(pool: HttpPool):
    with pytest.raises(ConnectorError, match=r"is not allowed.*listed: none"):
        await ask(session(pool, None, "booking_agent:echo"))


@pytest.mark.parametrize(
    "function",
    ["", "os", ":system", "os:", "os.path:", "a:b.c", "a:b()", "a b:c", "../x:y", "a:b\n", ".a:b", "a:b:c"],
)
def test_anything_but_a_module_and_a_name_is_refused_when_it_is_loaded(function: str):
    with pytest.raises(InvalidInput):
        settings_of(python_agent, {"function": function})


async def test_a_blocking_function_ends_by_the_timeout(pool: HttpPool, project: Path):
    with pytest.raises(ConnectorError, match=r"did not answer within 0\.2 s"):
        await ask(session(pool, project, "booking_agent:hang", timeoutSeconds=0.2))


class Greeter:
    async def __call__(self, messages: list[Message]) -> str:
        return f"Greetings, {messages[-1].text}"


async def with_context(ctx: ConnectorContext[Any]) -> str:
    return ctx.run.id


@pytest.mark.parametrize(
    ("function", "text", "type_name"),
    [
        (lambda messages: messages[-1].text, "Hi", "callable"),
        (with_context, "run-1", "with-context"),
        (Greeter(), "Greetings, Hi", "callable"),
        (str, None, "str"),
    ],
)
async def test_any_callable_is_a_connector(pool: HttpPool, function: Any, text: str | None, type_name: str):
    connector = callable_connector(function)
    assert connector.type == type_name
    reply = await ask(session_of(connector, pool))
    assert text is None or reply.messages[0].text == text


async def test_the_error_of_a_callable_names_it(pool: HttpPool):
    def my_agent(messages: list[Message]) -> str:
        raise ValueError("no")

    with pytest.raises(ConnectorError, match='Connector "my-agent": ValueError: no'):
        await ask(session_of(callable_connector(my_agent), pool))


async def test_a_callable_that_returns_nothing_is_an_error(pool: HttpPool):
    with pytest.raises(ConnectorError, match="returned nothing"):
        await ask(session_of(callable_connector(lambda messages: None), pool))
