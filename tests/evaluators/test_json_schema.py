"""The json-schema evaluator: JSON wherever agents put it, and nothing that JSON can do to us."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.builtin.json_schema import NotJson, find_json, json_schema, read_json
from evalstudio.evaluators.results import Finding
from evalstudio.evaluators.running import run_entries
from evalstudio.testing import context

BOOKING = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "guests": {"type": "array", "items": {"type": "string"}}},
    "required": ["id"],
}


async def look(response: str, schema: Any = BOOKING, **config: Any) -> Finding:
    facts = context(response, is_final=True).facts
    (result,) = await run_entries([json_schema.use({"schema": schema, **config})], facts)
    return result


@pytest.mark.parametrize(
    "response",
    [
        '{"id": 1}',
        '  {"id": 1, "guests": ["Zoë", "日本"]}\n',
        '\ufeff{"id": 1}',
        'Here you are:\n```json\n{"id": 1}\n```\nAnything else?',
        '```\n{"id": 1}\n```',
        '```JSON\r\n{"id": 1}\r\n```\r\n',
        'Sure: ```json {"id": 1} ```',
        'Sure: ```{"id": 1}```',
        '```json{"id": 1}```',
        '```json\n{"id": 1}```',
        '````json\n{"id": 1}\n````',
        '```json\n{"id": 1}',
        '```python\nprint({})\n```\ntext\n```json\n{"id": 1}\n```',
        '```\nnot json\n```\n```json\n{"id": 1}\n```',
        '```json\n{"id": 1, "guests": ["```"]}\n```',
        '```json\n{"id": 1}\n``` \n```json\n{"id": "second"}\n```',
    ],
)
async def test_json_is_found_alone_or_in_a_fenced_block(response: str) -> None:
    result = await look(response)
    assert result.holds, result.reason
    assert result.value == 1.0


@pytest.mark.parametrize(
    "response",
    [
        "",
        "   ",
        "no json here",
        "{'id': 1}",
        '{"id": 1',
        '{"id": NaN}',
        '{"id": 1} and more',
        "```json\n```",
        '```python\n{"id": 1}\n```',
        '{"id": "\ud83d"}',
        "```" * 100_000,
    ],
)
async def test_a_response_without_json_fails_with_a_reason(response: str) -> None:
    result = await look(response)
    assert result.failed
    assert "JSON" in result.reason


async def test_json_of_another_shape_fails_and_names_the_place() -> None:
    result = await look('{"id": 1, "guests": ["a", 2]}')
    assert result.failed
    assert result.reason == 'guests[1]: 2 is not of type "string"'
    assert result.metadata["problems"] == [result.reason]
    assert "required property" in (await look("{}")).reason


async def test_a_huge_value_does_not_fill_the_reason() -> None:
    result = await look(json.dumps({"id": "x" * 100_000}))
    assert result.failed
    assert len(result.reason) < 500


async def test_scalars_and_boolean_schemas_count() -> None:
    assert (await look("5", {"type": "integer"})).holds
    assert (await look("null", True)).holds
    assert (await look("null", False)).failed


def test_the_gate_follows_only_final() -> None:
    assert json_schema.use({"schema": {}}).gate == "always"
    assert json_schema.use({"schema": {}, "onlyFinal": True}).gate == "finally"
    assert json_schema.to_json()["gate"] == "always"


async def test_with_only_final_earlier_responses_are_skipped() -> None:
    entry = json_schema.use({"schema": {}, "onlyFinal": True}, gate="always")
    (result,) = await run_entries([entry], context("prose", is_final=False).facts)
    assert result.skipped
    assert (await look("prose", {}, onlyFinal=True)).failed


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, "schema"),
        ({"schema": {"type": "strin"}}, "not a usable JSON Schema"),
        ({"schema": {"pattern": "["}}, "not a usable JSON Schema"),
        ({"schema": "text"}, "schema"),
        ({"schema": {}, "criterionName": ""}, "must not be blank"),
        ({"schema": {"$ref": "#/$defs/missing"}}, "not a usable JSON Schema"),
        ({"schema": {"$ref": "file:///etc/passwd"}}, "never fetched"),
    ],
)
def test_a_wrong_config_is_refused_at_load(config: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        json_schema.use(config)


@pytest.fixture
def server() -> Iterator[tuple[int, list[Any]]]:
    """A real listening server that only counts who connects."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0.05)
    connections: list[Any] = []
    stop = threading.Event()

    def accept() -> None:
        while not stop.is_set():
            try:
                connection, address = listening.accept()
            except TimeoutError:
                continue
            connections.append(address)
            connection.close()

    thread = threading.Thread(target=accept)
    thread.start()
    yield listening.getsockname()[1], connections
    stop.set()
    thread.join()
    listening.close()


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:PORT/schema.json"},
        {"properties": {"a": {"items": {"$ref": "http://127.0.0.1:PORT/deep#/x"}}}},
        {"$schema": "http://127.0.0.1:PORT/meta"},
        {"$dynamicRef": "http://127.0.0.1:PORT/dynamic"},
        {"$id": "http://127.0.0.1:PORT/root", "$ref": "other.json"},
    ],
)
def test_a_remote_reference_is_a_config_error_and_opens_no_connection(
    schema: dict[str, Any], server: tuple[int, list[Any]]
) -> None:
    port, connections = server
    local = json.loads(json.dumps(schema).replace("PORT", str(port)))
    with pytest.raises(InvalidInput, match="not a usable JSON Schema"):
        json_schema.use({"schema": local})
    socket.create_connection(("127.0.0.1", port)).close()
    deadline = time.monotonic() + 2
    while not connections and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(connections) == 1, "only the test's own connection arrived"


@pytest.mark.parametrize("deep", ["[" * 100_000 + "]" * 100_000, "[" * 100_000, '{"a":' * 100_000])
async def test_deep_json_is_refused_before_it_is_parsed(deep: str) -> None:
    start = time.process_time()
    for response in (deep, f"```json\n{deep}\n```"):
        result = await look(response, {})
        assert result.failed
        assert result.reason == "the JSON is nested deeper than 200 levels"
    assert time.process_time() - start < 1


async def test_brackets_inside_strings_are_not_depth() -> None:
    assert (await look(json.dumps({"id": 1, "text": "[" * 1000 + '\\"' + "{" * 1000}))).holds
    assert (await look("[" * 200 + "]" * 200, {})).holds
    assert (await look("[" * 201 + "]" * 201, {})).failed
    assert (await look(json.dumps([[]] * 100_000), {})).holds


@pytest.mark.parametrize(
    ("huge", "limit"),
    [
        ('"' + "x" * 5_000_000 + '"', "limits.jsonBytes"),
        ('"' + "é" * 2_500_000 + '"', "limits.jsonBytes"),
        ("x" * 50_000_000, "limits.evaluatorCharacters"),
    ],
)
async def test_huge_json_is_an_error_that_names_the_limit(huge: str, limit: str) -> None:
    start = time.process_time()
    result = await look(huge, {})
    assert result.error is not None
    assert limit in result.error
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    "hostile",
    [
        '"' + '\\"' * 2_000_000,
        "[" * 300 + '"\\' * 2_000_000,
        "x```\n" * 900_000,
        "{" * 4_000_000,
        "}" * 4_000_000,
    ],
)
async def test_hostile_text_is_read_in_one_pass(hostile: str) -> None:
    start = time.process_time()
    assert (await look(hostile, {})).failed
    assert time.process_time() - start < 5


async def test_a_hostile_pattern_in_a_schema_is_an_error_not_a_hang() -> None:
    start = time.process_time()
    result = await look('"' + "a" * 100_000 + '!"', {"pattern": "(?=a)(a|aa)+$(?!x)"})
    assert result.error is not None
    assert "takes too long" in result.error
    assert time.process_time() - start < 2


async def test_a_schema_that_refers_to_itself_ends() -> None:
    tree = {"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}
    assert (await look("[[[]], []]", tree)).holds
    assert (await look("[[[1]], []]", tree)).failed


def test_strict_reading_takes_no_fences() -> None:
    assert read_json('{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
    assert find_json("```\n[1]\n```") == [1]
    with pytest.raises(NotJson):
        read_json("```\n[1]\n```")
