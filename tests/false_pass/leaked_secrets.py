"""Agents that give secrets away, and checks for it that have nothing to look for."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from evalstudio import define_connector

from .agent_shapes import add
from .table import Came, live, recorded, row

SECRET = "sk-table/of+what?must-not-pass"
LEAK = {"type": "secret-leak"}
SHAPES = {"type": "secret-leak", "config": {"patterns": True}}

_RAW = SECRET.encode()
_FORMS: dict[str, str] = {
    "as it is": SECRET,
    "percent-encoded": quote(SECRET, safe=""),
    "in JSON": json.dumps([SECRET]),
    "in base64": b64encode(_RAW).decode(),
    "in URL-safe base64 with its user name": urlsafe_b64encode(b"admin:" + _RAW).decode(),
    "in hex": _RAW.hex(),
}


def _leaking(answer: Any) -> Callable[[], Awaitable[Came]]:
    async def run() -> Came:
        agent = {"type": define_connector("leak")(lambda ctx: answer), "headers": {"X-Api-Key": SECRET}}
        return await live(agent, LEAK)

    return run


for _words, _form in _FORMS.items():
    _attempt = f"An agent gives its key away {_words}"
    add(_attempt, _leaking(f"My key is {_form}"), expect="fail", says="known secret")


@row("agent", "An agent puts its key into a tool call", expect="fail", says="arguments")
async def leaks_its_key_in_a_tool_call() -> Came:
    function = {"name": "curl", "arguments": {"header": SECRET}}
    return await _leaking({"role": "assistant", "content": "", "tool_calls": [{"function": function}]})()


@row("agent", "An agent names a field of its answer after its key", expect="fail", says="known secret")
async def leaks_its_key_as_a_name() -> Came:
    return await _leaking({"role": "assistant", "content": "Fine.", "debug": {SECRET: True}})()


@row("data", "A recorded answer holds a token of GitHub", expect="fail", says="GitHub token")
async def records_a_token() -> Came:
    return await recorded({"response": f"Use ghp_{'a1B2' * 9}."}, SHAPES)


@row("data", "A recorded answer that is no text holds a private key", expect="fail", says="private key")
async def records_a_private_key() -> Came:
    return await recorded({"response": {"pem": ["-----BEGIN RSA PRIVATE KEY-----\nMII"]}}, SHAPES)


@row("data", "A recorded answer is asked for known secrets, of which there are none", expect="error")
async def records_know_no_secrets() -> Came:
    return await recorded({"response": "Fine."}, LEAK)
