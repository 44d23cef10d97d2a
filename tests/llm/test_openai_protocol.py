"""OpenAI's protocol as servers speak it: what they are asked for, and the odd ways in which they answer."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field
from tests.llm.opened import ASKED, MET, WAS_MET, Verdict, open_llm
from tests.support.model_server import ModelServer, Recorded, Reply, refusal

from evalstudio.conversation.simulation import UserTurn
from evalstudio.evaluators.builtin.criteria_judge import answer_shape
from evalstudio.evaluators.builtin.llm_judge import vote_schema
from evalstudio.evaluators.criteria import EvaluationCriteria
from evalstudio.llm import ModelError
from evalstudio.llm.openai import takes_temperature
from evalstudio.llm.openai_schema import protocol_schema


class Inner(BaseModel):
    a: int
    title: list[str] = []


class Deep(BaseModel):
    """With everything a plugin's schema may have."""

    inner: Inner = Field(description="here")
    other: Inner | None = None
    kind: Literal["x", "y"]
    many: dict[str, int]
    anything: list[Any]
    pair: tuple[int, str]


class Tree(BaseModel):
    name: str
    children: list[Tree]


class Bounded(BaseModel):
    model_config = ConfigDict(extra="forbid")

    word: str = Field(min_length=1, max_length=5)
    number: int = Field(ge=1, le=5)


class Patterned(BaseModel):
    word: Annotated[str, Field(json_schema_extra={"pattern": "^a(?=b)"})]
    site: Annotated[str, Field(json_schema_extra={"format": "uri"})]
    when: Annotated[str, Field(json_schema_extra={"format": "date"})]


CRITERIA = [
    EvaluationCriteria.model_validate({"name": name, "description": "d", "scale": scale})
    for name, scale in (("a", "likert5"), ("b", "binary"), ("c", "percentage"))
]
OURS = [
    vote_schema(True, True),
    vote_schema(False, True),
    UserTurn,
    answer_shape(CRITERIA),
    answer_shape(CRITERIA[:1]),
]


@pytest.mark.parametrize("lengths", [True, False])
@pytest.mark.parametrize("shape", [*OURS, Verdict, Deep, Tree, Bounded, Patterned])
def test_schemas_are_sent_as_the_librarys_own_form_of_them(shape: type[BaseModel], lengths: bool) -> None:
    from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer
    from pydantic_ai.providers.openai import OpenAIProvider

    transformer = (
        OpenAIProvider.model_profile("gpt-4o")["json_schema_transformer"]  # pyright: ignore
        if lengths
        else OpenAIJsonSchemaTransformer
    )
    theirs = transformer(shape.model_json_schema())  # pyright: ignore
    form, strict = protocol_schema(shape.model_json_schema(), lengths=lengths)
    assert form == theirs.walk()
    assert strict == theirs.is_strict_compatible


def test_what_judges_and_simulated_users_are_asked_for_is_held_strictly_by_openai() -> None:
    assert all(protocol_schema(shape.model_json_schema(), lengths=True)[1] for shape in OURS)


def test_a_schema_too_deep_for_strict_answers_is_asked_for_without() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(10):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    assert protocol_schema(schema, lengths=True)[1]
    deeper = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    assert not protocol_schema(deeper, lengths=True)[1]


@pytest.mark.parametrize("model", ["o1", "o3-mini", "gpt-5", "gpt-5-mini", "gpt-5.1-codex", "gpt-5.2-pro"])
def test_a_model_that_reasons_takes_no_temperature(model: str) -> None:
    assert not takes_temperature(model)
    assert not takes_temperature(f"openai/{model}")


@pytest.mark.parametrize(
    "model", ["gpt-4o", "gpt-5-chat-latest", "gpt-5.1", "gpt-5.4", "llama3:8b", "olmo", "", "deepseek/r1"]
)
def test_any_other_model_takes_one(model: str) -> None:
    assert takes_temperature(model)


async def test_a_server_that_refuses_the_temperature_is_asked_without_from_then_on() -> None:
    def picky(request: Recorded) -> Reply | dict[str, Any]:
        return refusal(400, "'temperature' is not supported") if "temperature" in request.body else MET

    async with ModelServer(picky) as server, open_llm(server) as llm:
        assert (await llm.answer(ASKED, Verdict)).value == WAS_MET
        assert (await llm.answer(ASKED, Verdict)).value == WAS_MET
    assert ["temperature" in request.body for request in server.requests] == [True, False, False]


@pytest.mark.parametrize(("vendor", "by_tool"), [("deepseek", True), ("mistralai", False), ("mine", False)])
async def test_a_gateways_model_is_asked_as_its_vendors_models_can(vendor: str, by_tool: bool) -> None:
    def met(request: Recorded) -> Reply:
        return Reply(tool=MET) if "tools" in request.body else Reply(text=json.dumps(MET))

    models = {"evaluation": f"{vendor}/some-model"}
    async with ModelServer(met) as server, open_llm(server, "gateway", models=models) as llm:
        assert (await llm.answer(ASKED, Verdict)).value == WAS_MET
    assert ("tools" in server.requests[0].body) is by_tool


def completion(message: object, **fields: Any) -> Reply:
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return Reply(body=json.dumps({"choices": [choice], **fields}))


VERDICT = json.dumps(MET)
READABLE: list[tuple[str, Any]] = [
    ("text", {"content": VERDICT}),
    (
        "text in parts",
        {"content": [{"type": "text", "text": VERDICT[:9]}, {"type": "text", "text": VERDICT[9:]}]},
    ),
    (
        "parts beside a thought",
        {"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": VERDICT}]},
    ),
    ("after a thought", {"content": f"<think>It met {{}}</think>\n\n{VERDICT}"}),
    ("beside a thought", {"content": VERDICT, "reasoning_content": "Let me see."}),
    (
        "a tool call",
        {"content": None, "tool_calls": [{"function": {"name": "answer", "arguments": VERDICT}}]},
    ),
    ("a call with an object", {"tool_calls": [{"function": {"name": "answer", "arguments": MET}}]}),
]


@pytest.mark.parametrize("message", [pytest.param(message, id=name) for name, message in READABLE])
async def test_an_answer_is_read_wherever_servers_put_it(message: Any) -> None:
    async with ModelServer(completion(message)) as server, open_llm(server) as llm:
        answer = await llm.answer(ASKED, Verdict)
    assert answer.value == WAS_MET
    assert answer.usage.total_tokens == 0
    assert len(server.requests) == 1


async def test_a_thought_that_is_quoted_is_no_thought_and_one_without_an_end_no_answer() -> None:
    said = 'The agent wrote "<think>no</think>".'
    async with ModelServer([completion({"content": said})]) as server, open_llm(server) as llm:
        assert (await llm.chat(ASKED)).value == said
        server.replies = completion({"content": "<think>Should I say"})
        with pytest.raises(ModelError, match="answered nothing"):
            await llm.chat(ASKED)


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "refusal": "I cannot judge this."},
        {"content": VERDICT, "refusal": "No."},
        {"content": [{"type": "text", "text": VERDICT}, {"type": "refusal", "refusal": "No."}]},
    ],
)
async def test_a_refusal_is_no_answer(message: Any) -> None:
    async with ModelServer(completion(message)) as server, open_llm(server) as llm:
        with pytest.raises(ModelError, match="its content filter declined"):
            await llm.answer(ASKED, Verdict)


async def test_a_verdict_in_a_call_of_a_tool_that_was_not_offered_is_no_answer() -> None:
    reply = completion({"tool_calls": [{"function": {"name": "approve", "arguments": VERDICT}}]})
    async with ModelServer(reply) as server, open_llm(server) as llm:
        with pytest.raises(ModelError, match="no usable answer, twice"):
            await llm.answer(ASKED, Verdict)
        with pytest.raises(ModelError, match="answered nothing"):
            await llm.chat(ASKED)


async def test_several_answers_where_one_was_asked_for_are_none() -> None:
    choices = [{"message": {"content": VERDICT}}, {"message": {"content": "{}"}}]
    reply = Reply(body=json.dumps({"choices": choices}))
    async with ModelServer(reply) as server, open_llm(server) as llm:
        with pytest.raises(ModelError, match="2 choices where one was asked for"):
            await llm.answer(ASKED, Verdict)


@pytest.mark.parametrize("finish", ["error", "content_filter"])
async def test_a_reply_that_broke_off_is_no_answer_however_whole_it_looks(finish: str) -> None:
    reply = Reply(body=json.dumps({"choices": [{"message": {"content": VERDICT}, "finish_reason": finish}]}))
    async with ModelServer(reply) as server, open_llm(server) as llm:
        with pytest.raises(ModelError, match="not complete"):
            await llm.answer(ASKED, Verdict)
        with pytest.raises(ModelError, match="answered nothing"):
            await llm.chat(ASKED)


@pytest.mark.parametrize("content", [7, {"text": VERDICT}, True])
async def test_content_of_another_kind_is_an_error(content: Any) -> None:
    async with ModelServer(completion({"content": content})) as server, open_llm(server) as llm:
        with pytest.raises(ModelError, match="outside the protocol: the content of the message is no text"):
            await llm.answer(ASKED, Verdict)


async def test_an_error_with_the_status_of_success_counts_as_what_it_says() -> None:
    limited = Reply(
        body=json.dumps({"error": {"code": 429, "message": "slow"}}), headers={"retry-after": "0"}
    )
    async with ModelServer([limited, MET]) as server, open_llm(server) as llm:
        assert (await llm.answer(ASKED, Verdict)).value == WAS_MET
        assert llm.usage["evaluation"].retries == 1
        server.replies = Reply(body=json.dumps({"error": "out of order"}))
        with pytest.raises(ModelError, match=r"an error with the status of success: .*out of order"):
            await llm.chat(ASKED)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}, 10),
        ({"prompt_tokens": -7, "completion_tokens": 3}, 0),
        ({"prompt_tokens": "many"}, 0),
        ("none", 0),
        (None, 0),
    ],
)
async def test_usage_that_is_no_count_of_tokens_is_unknown(usage: Any, tokens: int) -> None:
    async with ModelServer(completion({"content": "ok"}, usage=usage)) as server, open_llm(server) as llm:
        assert (await llm.chat(ASKED)).usage.total_tokens == tokens


@pytest.mark.parametrize("address", ["ftp://example", "nowhere", "http://[", "http://127.0.0.1:99999/v1"])
async def test_an_address_that_is_none_is_said_at_once(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_URL", address)
    async with ModelServer() as server, open_llm(server, baseUrl="${JUDGE_URL}") as llm:
        with pytest.raises(ModelError, match=r"llmSettings\.baseUrl"):
            await llm.chat(ASKED)
        assert llm.usage["persona"].retries == 0
