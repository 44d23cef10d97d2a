"""What goes over the wire to each provider, and what comes back."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest
from pydantic import create_model
from tests.llm.opened import ASKED, KEY, MET, WAS_MET, Verdict, open_llm
from tests.support.model_server import ModelServer, Recorded, Reply

from evalstudio.evaluators.contract import Embedder, LanguageModel
from evalstudio.llm import ModelError
from evalstudio.messages import Message, TokensUsage


def met(request: Recorded) -> Reply:
    """A verdict in the form it was asked for."""
    return Reply(tool=MET) if "tools" in request.body else Reply(text=json.dumps(MET))


async def test_openai_is_asked_with_the_schema_as_response_format() -> None:
    async with ModelServer(met) as server, open_llm(server, seed=7, maxTokens=500) as llm:
        answer = await llm.answer(ASKED, Verdict)
    assert answer.value == WAS_MET
    assert answer.usage == TokensUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    assert json.loads(answer.raw) == MET
    sent = server.requests[0]
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["user-agent"].startswith("evalstudio/")
    assert [message["role"] for message in sent.body["messages"]] == ["system", "user", "assistant", "user"]
    assert sent.texts == ["You judge.", "Was it booked?", "Which one?", "The second."]
    assert sent.body["model"] == "gpt-4o"
    assert sent.body["temperature"] == 0
    assert sent.body["seed"] == 7
    assert sent.body["max_completion_tokens"] == 500
    form = sent.body["response_format"]["json_schema"]
    assert form["name"] == "Verdict"
    assert set(form["schema"]["properties"]) == {"reasoning", "met", "confidence"}
    assert "tools" not in sent.body


async def test_openai_is_asked_with_a_tool_where_so_configured() -> None:
    async with ModelServer(met) as server, open_llm(server, structured="tool") as llm:
        answer = await llm.answer(ASKED, Verdict)
    assert answer.value == WAS_MET
    sent = server.requests[0].body
    assert sent["tool_choice"] == "required"
    assert set(sent["tools"][0]["function"]["parameters"]["properties"]) == {"reasoning", "met", "confidence"}
    assert "response_format" not in sent


async def test_a_compatible_server_needs_only_its_address() -> None:
    settings: dict[str, Any] = {"apiKey": None, "models": {"evaluation": "llama3:8b"}}
    async with ModelServer(met) as server, open_llm(server, "my-gateway", **settings) as llm:
        await llm.answer(ASKED, Verdict)
    assert server.requests[0].body["model"] == "llama3:8b"
    assert KEY not in server.requests[0].headers["authorization"]


@pytest.mark.parametrize(("model", "native"), [("claude-opus-4-8", True), ("claude-3-haiku", False)])
async def test_anthropic_is_asked_natively_or_with_a_tool_as_the_model_can(model: str, native: bool) -> None:
    changes: dict[str, Any] = {"models": {"evaluation": model}, "maxTokens": 800}
    async with ModelServer(met) as server, open_llm(server, "anthropic", **changes) as llm:
        answer = await llm.answer(ASKED, Verdict)
    assert answer.value == WAS_MET
    assert answer.usage.total_tokens == 15
    sent = server.requests[0]
    assert sent.path == "/v1/messages"
    assert KEY in sent.headers.get("authorization", "") + sent.headers.get("x-api-key", "")
    assert sent.body["system"] == "You judge."
    assert [message["role"] for message in sent.body["messages"]] == ["user", "assistant", "user"]
    assert sent.body["max_tokens"] == 800
    assert ("output_config" in sent.body) is native
    assert ("tools" in sent.body) is not native


async def test_a_claude_model_without_a_token_limit_is_read_as_a_stream() -> None:
    changes: dict[str, Any] = {"models": {"evaluation": "claude-opus-4-8", "persona": "claude-opus-4-8"}}
    async with ModelServer(met) as server, open_llm(server, "anthropic", **changes) as llm:
        assert (await llm.answer(ASKED, Verdict)).value == WAS_MET
        server.replies = "Hello there."
        answer = await llm.chat(ASKED)
    assert answer.value == "Hello there."
    assert answer.usage.total_tokens == 15
    assert server.requests[0].body["stream"] is True


async def test_google_is_asked_with_a_response_schema() -> None:
    changes: dict[str, Any] = {"models": {"evaluation": "gemini-2.5-flash"}, "seed": 7}
    async with ModelServer(met) as server, open_llm(server, "google", **changes) as llm:
        answer = await llm.answer(ASKED, Verdict)
    assert answer.value == WAS_MET
    assert answer.usage.total_tokens == 15
    sent = server.requests[0]
    assert sent.path.endswith("/models/gemini-2.5-flash:generateContent")
    assert sent.headers["x-goog-api-key"] == KEY
    assert sent.body["systemInstruction"]["parts"][0]["text"] == "You judge."
    assert [content["role"] for content in sent.body["contents"]] == ["user", "model", "user"]
    assert sent.body["generationConfig"]["responseMimeType"] == "application/json"
    assert sent.body["generationConfig"]["temperature"] == 0
    assert sent.body["generationConfig"]["seed"] == 7


async def test_google_is_asked_with_a_tool_where_so_configured() -> None:
    changes: dict[str, Any] = {"models": {"evaluation": "gemini-2.5-flash"}, "structured": "tool"}
    async with ModelServer(met) as server, open_llm(server, "google", **changes) as llm:
        assert (await llm.answer(ASKED, Verdict)).value == WAS_MET
    assert server.requests[0].body["toolConfig"]["functionCallingConfig"]["mode"] == "ANY"


@pytest.mark.parametrize("model", ["o3", "gpt-5"])
async def test_models_that_reason_are_sent_no_temperature(model: str) -> None:
    async with ModelServer(met) as server, open_llm(server) as llm:
        await llm.answer(ASKED, Verdict, model=model)
    assert "temperature" not in server.requests[0].body


async def test_a_name_with_a_provider_goes_to_that_provider() -> None:
    async with ModelServer("hello from openai") as here, ModelServer("hello from claude") as there:
        providers = {"anthropic": {"baseUrl": there.root, "apiKey": "other-key"}}
        async with open_llm(here, providers=providers, maxTokens=100) as llm:
            assert (await llm.chat(ASKED)).value == "hello from openai"
            assert (await llm.chat(ASKED, model="anthropic:claude-opus-4-8")).value == "hello from claude"
    assert KEY not in str(there.requests[0].headers)
    assert "other-key" not in str(here.requests[0].headers)


async def test_a_key_that_is_not_set_is_named_on_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    async with ModelServer() as server, open_llm(server, apiKey="${JUDGE_KEY}") as llm:
        with pytest.raises(ModelError, match="environment variable JUDGE_KEY"):
            await llm.chat(ASKED)
        monkeypatch.setenv("JUDGE_KEY", "now-set")
        assert (await llm.chat(ASKED)).value == "Hello."
    assert server.requests[0].headers["authorization"] == "Bearer now-set"


async def test_a_missing_library_is_reported_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    async with ModelServer() as server, open_llm(server, "anthropic") as llm:
        with pytest.raises(ModelError, match=r'pip install "evalstudio\[anthropic\]"'):
            await llm.chat(ASKED)


async def test_a_proxy_for_the_world_outside_is_not_used_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with ModelServer("direct") as server, open_llm(server) as llm:
        assert (await llm.chat(ASKED)).value == "direct"


async def test_a_schema_may_have_any_name() -> None:
    odd = create_model("Wynik[żółw] " + "x" * 100, met=(bool, ...))
    async with ModelServer({"met": True}) as server, open_llm(server) as llm:
        assert (await llm.answer(ASKED, odd)).value == odd(met=True)
    name = server.requests[0].body["response_format"]["json_schema"]["name"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)


async def test_it_fits_the_contracts_of_the_evaluators() -> None:
    async with ModelServer(MET) as server, open_llm(server) as llm:
        model: LanguageModel = llm
        embedder: Embedder = llm
        assert (await model.answer(ASKED, Verdict)).value == WAS_MET
        assert len(await embedder.embed(["a", "b"])) == 2


async def test_chat_uses_the_persona_model_and_leaves_the_temperature_to_the_provider() -> None:
    async with ModelServer("Hi there! 👋") as server, open_llm(server) as llm:
        answer = await llm.chat(ASKED)
        assert (answer.value, answer.raw) == ("Hi there! 👋", "Hi there! 👋")
        await llm.chat(ASKED, role="evaluation")
    first, second = server.requests
    assert first.body["model"] == "gpt-4o-mini"
    assert "temperature" not in first.body
    assert second.body["model"] == "gpt-4o"
    assert second.body["temperature"] == 0


async def test_tool_calls_and_results_are_told_as_text_and_empty_messages_dropped() -> None:
    said = [
        Message(role="developer", content="Play the user."),
        Message(role="user", content=""),
        Message.model_validate(
            {
                "role": "assistant",
                "content": "One moment.",
                "tool_calls": [{"name": "book", "args": {"n": 2}}],
            }
        ),
        Message(role="tool", name="book", content="done"),
        Message.model_validate({"role": "user", "content": [{"type": "text", "text": "part"}, "two"]}),
    ]
    async with ModelServer() as server, open_llm(server) as llm:
        await llm.chat(said)
    assert server.requests[0].texts == [
        "Play the user.",
        'One moment.\n[called book with {"n":2}]',
        "[result of book] done",
        "part\ntwo",
    ]


async def test_an_empty_reply_is_an_error_not_an_empty_message() -> None:
    async with ModelServer(" ") as server, open_llm(server) as llm:
        with pytest.raises(ModelError, match="answered nothing"):
            await llm.chat(ASKED)
        server.replies = Reply(text="", finish="length")
        with pytest.raises(ModelError, match="token limit"):
            await llm.chat(ASKED)


async def test_what_a_role_used_is_added_up_with_its_cost_where_known() -> None:
    async with ModelServer(Reply(text="ok", tokens=(1_000_000, 100_000))) as server, open_llm(server) as llm:
        await llm.chat(ASKED)
        await llm.chat(ASKED, model="a-model-of-my-own")
        used = llm.usage["persona"]
        assert used.calls == 2
        assert used.tokens.total_tokens == 2_200_000
        assert used.cost == pytest.approx(0.15 + 0.06)
        assert used.unpriced == 1
        assert llm.usage["evaluation"].cost is None
        assert llm.usage["persona"].to_json()["tokensUsage"]["input_tokens"] == 2_000_000
