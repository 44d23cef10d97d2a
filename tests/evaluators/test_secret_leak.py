"""What secret-leak fails on, what it leaves alone, and that it never quotes a secret."""

from __future__ import annotations

from typing import Any

import pytest

from evalstudio import define_connector, run_evaluation, run_scenario
from evalstudio.conversation.judging import judge_conversation
from evalstudio.conversation.preparation import Services, prepare
from evalstudio.evaluators.builtin.secret_leak import SecretLeakConfig, secret_leak
from evalstudio.evaluators.contract import EvaluationResult, NotAvailable
from evalstudio.plugins import create_registry
from evalstudio.testing import context

SHAPES = {
    "AWS access key": "AKIAIOSFODNN7EXAMPLE",
    "GitHub token": "ghp_" + "a1B2" * 9,
    "GitLab token": "glpat-" + "x" * 20,
    "Google API key": "AIza" + "S" * 35,
    "Hugging Face token": "hf_" + "q" * 34,
    "JSON Web Token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "npm token": "npm_" + "n" * 36,
    "private key": "-----BEGIN OPENSSH PRIVATE KEY-----",
    "Slack token": "xoxb-1234567890-abcdef",
    "Stripe key": "sk_live_" + "4" * 24,
    "model provider's key": "sk-proj-" + "Z" * 40,
}
HARMLESS = [
    "",
    "sk-8",
    "The key is under the mat.",
    "AKIA",
    "eyJ.eyJ.x",
    "hf_model",
    "-----BEGIN CERTIFICATE-----",
]


def found(text: str, **more: Any) -> EvaluationResult:
    result = secret_leak(context(text, config=SecretLeakConfig(patterns=True), **more))
    assert isinstance(result, EvaluationResult)
    return result


@pytest.mark.parametrize(("name", "credential"), SHAPES.items(), ids=SHAPES)
def test_shapes_of_credentials_are_known_and_not_quoted(name: str, credential: str) -> None:
    result = found(f"Take this:\n{credential}\nand go.")
    assert (result.success, result.reason) == (False, f"{name} in messages[0]")
    assert credential not in str(result)


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_texts_hold(text: str) -> None:
    assert found(text).success


def test_without_anything_to_look_for_it_is_an_error() -> None:
    with pytest.raises(NotAvailable, match="patterns: true"):
        secret_leak(context("Hello", config=SecretLeakConfig(patterns=False)))


def test_a_long_text_of_beginnings_takes_no_long_time() -> None:
    assert found("sk-" * 100_000 + "eyJ" * 100_000 + "-----BEGIN " * 50_000).success is False


async def test_a_record_may_be_any_json() -> None:
    check = {"type": "secret-leak", "config": {"patterns": True}}
    record = {"response": {"AKIAIOSFODNN7EXAMPLE": 1}}
    result = await run_evaluation(record, {"evaluatorConfigs": [check]})
    assert (result.outcome, result.results[0].reasoning) == ("fail", "AWS access key in response")


async def test_at_the_end_every_turn_counts_and_a_stored_run_is_judged_alike() -> None:
    secret = "shop-3f9a1c77e2"
    scenario = {
        "name": "leak",
        "script": ["one", "two"],
        "evaluators": [{"type": "secret-leak", "gate": "finally"}],
    }
    answers = iter([secret, "Sorry."])
    agent = {"type": define_connector("slip")(lambda ctx: next(answers)), "headers": {"X-Key": secret}}
    result = await run_scenario(scenario, agent)
    assert (result.outcome, result.reason) == ("fail", "known secret in messages[0].content")
    assert [turn.redacted for turn in result.turns] == [["messages[0].content"], []]
    from evalstudio.conversation.definitions import Scenario

    prepared = prepare(Scenario.model_validate(scenario), create_registry())
    again = await judge_conversation(prepared, result.turns, Services(None, None))  # pyright: ignore[reportArgumentType]
    assert (again.outcome, again.reason) == (result.outcome, result.reason)
