"""The worked cases of recorded scoring that need the runner, a model, embeddings or storage."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.contract import Answer
from evalstudio.messages import Message, TokensUsage
from evalstudio.scoring.runner import run_evaluation
from evalstudio.storage.json_lines import JsonFileStorageProvider

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "recorded_scoring.json").read_text(encoding="utf-8")
)
# What the record says stands between marked lines.
FENCED = re.compile(r"=== (\S+) (mark-\w+) ===\n(.*?)\n=== end of \1 \2 ===", re.DOTALL)
LEGACY = {
    "RuleBased",
    "LexicalSimilarity",
    "KeywordCoverage",
    "Sentiment",
    "Toxicity",
    "ToolUsage",
    "NLPAccuracy",
    "LLMJudge",
}


def of(*components: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in CASES if case["component"] in components]


class ScriptedModel:
    """Answers as a case says, and remembers what it was asked."""

    def __init__(self, description: str) -> None:
        self.reply = description.removeprefix("<scripted model replies ").removesuffix(">")
        self.prompts: list[str] = []

    async def answer(
        self, messages: Sequence[Message], schema: Any, *, model: str | None = None
    ) -> Answer[Any]:
        self.prompts.append(messages[-1].text)
        if self.reply.startswith("exception"):
            raise RuntimeError(self.reply)
        return Answer(schema.model_validate_json(self.reply), TokensUsage(), self.reply)


class FixedVectors:
    """Embeds as a case says."""

    def __init__(self, description: str) -> None:
        self.description = description

    async def embed(self, texts: Sequence[str], *, model: str | None = None) -> list[list[float]]:
        if "opposite" in self.description:
            return [[1.0, 0.0], [-1.0, 0.0]]
        vectors = [json.loads(found) for found in re.findall(r"\[[^\]]*\]", self.description)]
        return vectors if len(vectors) == 2 else vectors * 2


def stand_ins(value: Any, models: list[ScriptedModel]) -> Any:
    """The case's config with its described callables and models in place; absent keys left out."""
    if isinstance(value, dict):
        return {key: stand_ins(item, models) for key, item in value.items() if item != "<absent>"}
    if isinstance(value, list):
        return [stand_ins(item, models) for item in value]
    if isinstance(value, str) and value.startswith("<mock"):
        return FixedVectors(value)
    if isinstance(value, str) and value.startswith("<scripted"):
        models.append(ScriptedModel(value))
        return models[-1]
    if isinstance(value, str) and value.startswith("<fn"):
        return argument_check(value)
    return value


def argument_check(description: str) -> Any:
    def check(arguments: dict[str, Any]) -> Any:
        if "throws" in description:
            raise RuntimeError("the check broke")
        if "invalid" in description:
            return {"isValid": False, "reason": "Missing unit"}
        if "London" in description:
            return arguments.get("location") == "London"
        return arguments.get("ok") is True

    return check


def as_run(case: dict[str, Any], models: list[ScriptedModel]) -> tuple[dict[str, Any], dict[str, Any]]:
    given = stand_ins(case["input"], models)
    config = stand_ins(case["config"], models)
    if case["component"] != "Runner":
        config = {"evaluatorConfigs": [{"type": case["component"], "config": config}]}
    return {**given, "criteria": case["criteria"]}, config


def assert_results(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    assert len(found) == len(wanted)
    for one, want in zip(found, wanted, strict=True):
        assert one["criterionName"] == want["criterionName"]
        assert ("error" in one) == bool(want.get("error"))
        assert bool(one.get("skipped")) == bool(want.get("skipped"))
        if want.get("error"):
            assert "score" not in one
        elif "score" in want:
            assert one["score"] == pytest.approx(want["score"], abs=1e-6)
        if "evaluatorType" in want:
            assert one["evaluatorType"] == want["evaluatorType"]
        for key, item in want.get("metadata", {}).items():
            assert one["metadata"][key] == (
                pytest.approx(item, abs=1e-6) if isinstance(item, float) else item
            )


@pytest.mark.parametrize("case", of("Runner", *LEGACY))
async def test_worked_case(case: dict[str, Any]) -> None:
    want = case.get("want") or case["expected"]
    models: list[ScriptedModel] = []
    given, config = as_run(case, models)
    if want.get("rejected"):
        with pytest.raises((InvalidInput, ValidationError)):
            await run_evaluation(given, config)
        return
    shown = (await run_evaluation(given, config)).to_json()
    if "results" in want:
        assert_results(shown["results"], want["results"])
    if "overallScore" in want:
        assert shown["overallScore"] == (
            None if want["overallScore"] is None else pytest.approx(want["overallScore"], abs=1e-6)
        )
    if "runErrors" in want:
        assert shown["runErrors"] == want["runErrors"]
    if "promptSent" in want:
        assert [FENCED.sub(r"\3", prompt) for prompt in models[0].prompts] == [want["promptSent"]]
    if case["id"] == "LJ-13":
        assert models[0].prompts == []


@pytest.mark.parametrize("case", of("JsonFileStorageProvider"))
async def test_worked_storage_case(case: dict[str, Any], tmp_path: Path) -> None:
    expected = case["expected"]
    if expected.get("throws"):
        with pytest.raises((TypeError, ValueError)):
            JsonFileStorageProvider(**case["config"])
        return
    path = tmp_path / case["config"]["filePath"]
    storage = JsonFileStorageProvider(path)
    if "dirExists" in expected:
        assert path.parent.is_dir() == expected["dirExists"]
        assert path.exists() == expected["fileExists"]
        return
    if "saves" in case["input"]:
        for number in range(1, case["input"]["saves"] + 1):
            await storage.save_result({"a": number})
    else:
        odd = {"overallScore": float("nan"), "f": print, "d": datetime(1970, 1, 1, tzinfo=UTC)}
        await storage.save_result(odd)
    assert path.read_text(encoding="utf-8") == expected["text"]


def test_every_component_of_the_cases_is_run() -> None:
    elsewhere = {"Normalization", "getInputText"}
    assert {case["component"] for case in CASES} == LEGACY | elsewhere | {"Runner", "JsonFileStorageProvider"}
