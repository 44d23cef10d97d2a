"""Scoring plans: what they may say, how they build on each other, and how a mistake in one is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.scoring_files import LENGTH_PLAN, PLAN, Folder, command, rows

from evalstudio.base.problems import InvalidInput
from evalstudio.base.schemas import compile_schema, problems
from evalstudio.llm.settings import LlmSettings
from evalstudio.project.changes import read_files
from evalstudio.scoring.job import set_up
from evalstudio.scoring.plan import ScoringJob, load_plan


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_yaml_and_json_say_the_same(folder: Folder) -> None:
    as_yaml = folder.plan(yaml.safe_dump(PLAN), "plan.yaml")
    assert load_plan(as_yaml) == load_plan(folder.plan(PLAN))


def test_words_of_yaml_mean_the_same_in_a_plan_and_in_a_scenario(folder: Folder) -> None:
    evaluators = "evaluators: [{type: keyword-coverage, config: {keywords: [no, 12:30, 007, true]}}]\n"
    plan = load_plan(folder.plan(evaluators.replace(", true", ""), "plan.yaml"))
    scenario = folder.plan(f"kind: scenario\nname: S\n{evaluators}".replace(", true", ""), "s.yaml")
    assert plan.evaluators[0].config == {"keywords": ["no", "12:30", "007"]}
    assert read_files([scenario])[0].body["evaluators"][0]["config"] == plan.evaluators[0].config
    assert load_plan(folder.plan(evaluators, "plan.yaml")).evaluators[0].config["keywords"][3] is True


# -- extends


def test_a_plan_builds_on_another_by_name(folder: Folder) -> None:
    folder.plan(
        {
            "criteria": [{"name": "a", "weight": 1}, {"name": "b"}],
            "evaluators": [{"type": "latency", "name": "speed"}, {"type": "token-usage"}],
            "thresholds": {"a": 0.5, "b": 0.5},
            "llmSettings": {
                "provider": "mine",
                "baseUrl": "http://127.0.0.1:1/v1",
                "models": {"evaluation": "big"},
            },
            "only": ["fast"],
            "failUnder": 0.4,
        },
        "base.json",
    )
    path = folder.plan(
        {
            "extends": "base.json",
            "criteria": [{"name": "c"}, {"name": "a", "weight": 5}],
            "evaluators": [{"type": "response-length", "name": "speed"}, {"type": "latency"}],
            "thresholds": {"a": 0.9},
            "llmSettings": {"models": {"persona": "small"}},
            "only": ["llm"],
        }
    )
    plan = load_plan(path)
    assert [(c.name, c.weight) for c in plan.criteria] == [("a", 5), ("b", 1), ("c", 1)]
    assert [e.type for e in plan.evaluators] == ["response-length", "token-usage", "latency"]
    assert plan.thresholds == {"a": 0.9, "b": 0.5}
    assert plan.llm_settings is not None
    assert (plan.llm_settings.models.evaluation, plan.llm_settings.models.persona) == ("big", "small")
    assert plan.only == ["llm"]
    assert plan.fail_under == 0.4


def test_several_plans_are_laid_over_each_other_in_order(folder: Folder) -> None:
    (folder.path / "sets").mkdir()
    folder.plan({"criteria": [{"name": "a", "weight": 1}]}, "sets/one.json")
    folder.plan(
        {"extends": "one.json", "criteria": [{"name": "a", "weight": 2}, {"name": "b"}]}, "sets/two.json"
    )
    folder.plan("evaluatorConfigs:\n  - {type: latency}\n", "sets/three.yaml")
    path = folder.plan(
        {"extends": ["sets/two.json", "sets/three.yaml"], "evaluators": [{"type": "token-usage"}]}
    )
    plan = load_plan(path)
    assert [(c.name, c.weight) for c in plan.criteria] == [("a", 2), ("b", 1)]
    assert [e.type for e in plan.evaluators] == ["latency", "token-usage"]


def test_the_same_base_may_be_reached_twice(folder: Folder) -> None:
    folder.plan(LENGTH_PLAN, "base.json")
    folder.plan({"extends": "base.json"}, "left.json")
    folder.plan({"extends": "base.json"}, "right.json")
    plan = load_plan(folder.plan({"extends": ["left.json", "right.json"]}))
    assert [c.name for c in plan.criteria] == ["ok"]


@pytest.mark.parametrize(
    ("plans", "words"),
    [
        ({"plan.json": {"extends": "plan.json"}}, "plan.json: extends itself"),
        (
            {"plan.json": {"extends": "b.json"}, "b.json": {"extends": "plan.json"}},
            "extends itself, through plan.json → b.json → plan.json",
        ),
        ({"plan.json": {"extends": "gone.yaml"}}, r"plan.json:1: extends: .*gone.yaml does not exist"),
        ({"plan.json": {"extends": [5]}}, "extends: expected a path"),
        ({"plan.json": {"extends": {"a": 1}}}, "extends: expected a path"),
        ({"plan.json": {"extends": "b.json"}, "b.json": "{"}, "b.json:1:2: not valid JSON"),
        ({"plan.json": {"extends": "b.json", "evaluators": 5}, "b.json": LENGTH_PLAN}, "evaluators: "),
    ],
)
def test_what_cannot_be_extended_is_told_with_its_file(
    folder: Folder, plans: dict[str, Any], words: str
) -> None:
    for name, plan in plans.items():
        folder.plan(plan, name)
    with pytest.raises(InvalidInput, match=words.replace("(", r"\(")):
        load_plan(folder.path / "plan.json")


# -- mistakes

MISTAKES: list[tuple[Any, list[str]]] = [
    ("", ["plan.json:1:1: not valid JSON: the file is empty"]),
    ([], ["expected an object with named settings"]),
    ({}, ["evaluators: at least one evaluator is needed"]),
    ({**PLAN, "treshold": 1}, ["plan.json:1: treshold: unknown key; did you mean thresholds?"]),
    ({**PLAN, "criteria": [{"name": "a"}, {"name": "a"}]}, ['criteria: criterion "a" is declared twice']),
    ({**PLAN, "criteria": [{"name": "a", "weight": -1}]}, ["criteria[0].weight: "]),
    ({**PLAN, "criteria": [{"name": "a", "range": [5, 1]}]}, ["criteria[0]: range needs two finite numbers"]),
    (
        {**PLAN, "thresholds": {"okay": 0.5}},
        ['thresholds.okay: no criterion is named "okay"', "mean ok?"],
    ),
    ({**PLAN, "thresholds": {"ok": 80}}, ["thresholds.ok: "]),
    ({**PLAN, "failUnder": 2}, ["failUnder: "]),
    ({**PLAN, "concurrency": 0}, ["concurrency: "]),
    ({**PLAN, "fields": {"respnse": "x"}}, ['fields: "respnse" is not a field of a record']),
    ({"evaluators": [{"config": {}}]}, ["evaluators[0].type: is missing"]),
    ({"evaluatorConfigs": [{"config": {}}]}, ["evaluatorConfigs[0].type: is missing"]),
    (
        {"evaluators": [{"type": "regx"}]},
        ["evaluators[0].type: no evaluator is called", "mean regex"],
    ),
    (
        {"evaluators": [{"type": "regex", "config": {"patern": "x"}}]},
        ["config.patern: unknown key", "mean pattern?"],
    ),
    ({"evaluators": [{"type": "latency", "name": "a"}] * 2}, ["'a' is used twice"]),
    ({**PLAN, "only": ["llm"]}, ["leave no evaluator"]),
    ({"criteria": PLAN["criteria"], "evaluators": [{"type": "criteria-judge"}]}, ["add llmSettings"]),
    ({**PLAN, "llmSettings": {"apiKey": "sk-secret", "modles": {}}}, ["llmSettings.modles"]),
    ({**PLAN, "plugins": ["./gone.py"]}, ["gone.py"]),
]


@pytest.mark.parametrize(("plan", "words"), MISTAKES)
def test_a_mistake_is_told_with_its_file_and_place(
    folder: Folder, capsys: pytest.CaptureFixture[str], plan: Any, words: list[str]
) -> None:
    folder.dataset(rows(2))
    path = folder.plan(plan)
    said = command(capsys, "score", folder.path / "records.jsonl", "-c", path, "-o", folder.output)
    assert said.code == 2
    for word in words:
        assert word in said.err
    assert "Traceback" not in said.err
    assert "sk-secret" not in said.err
    assert not folder.output.exists()


def test_all_mistakes_are_told_each_with_the_file_and_line_it_stands_on(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.plan("evaluators:\n  - {type: latency}\n  - type: regex\n    config: {patern: x}\n", "base.yaml")
    own = [
        "extends: base.yaml",
        "evaluators:",
        "  - type: regx",
        "  - type: latency-budget",
        "    maxMs: fast",
    ]
    path = folder.plan("\n".join(own), "plan.yaml")
    said = command(capsys, "score", folder.dataset(rows(2)), "-c", path, "-o", folder.output)
    assert (said.code, said.err.replace(f"{folder.path}/", "").splitlines()) == (
        2,
        [
            "Error: 4 problems:",
            "  base.yaml:4: evaluators[1].config.pattern: is missing",
            "  base.yaml:4: evaluators[1].config.patern: unknown key; did you mean pattern?",
            '  plan.yaml:3: evaluators[2].type: no evaluator is called "regx"; did you mean regex?',
            "  plan.yaml:5: evaluators[3].maxMs: expected a number",
        ],
    )
    path = folder.plan("evaluators: 5\nfailUnder: 2\nfields:\n  respnse: x\ntreshold: 1\n", "plan.yaml")
    said = command(capsys, "score", folder.dataset(rows(2)), "-c", path, "-o", folder.output)
    for line, words in ((1, "evaluators"), (2, "failUnder"), (3, "fields"), (5, "treshold")):
        assert f"plan.yaml:{line}: {words}: " in said.err


def test_a_plan_that_is_not_there_is_an_error(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "score", folder.dataset(rows(1)), "-c", folder.path / "no.yaml")
    assert (said.code, "no.yaml: no such file" in said.err) == (2, True)


# -- plugins

PLUGIN = """
from evalstudio import EvaluationResult, EvaluatorContext, define_evaluator

@define_evaluator
def shouts(ctx: EvaluatorContext) -> EvaluationResult:
    loud = ctx.response.isupper()
    return EvaluationResult(success=loud, criterion_name="loud", score=loud)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_evaluators_of_plugins_score_datasets(folder: Folder, workers: int) -> None:
    (folder.path / "sets").mkdir()
    (folder.path / "sets" / "loud.py").write_text(PLUGIN)
    folder.plan({"plugins": ["./loud.py"], "criteria": [{"name": "loud"}]}, "sets/base.json")
    folder.plan({"extends": "sets/base.json", "evaluators": [{"type": "shouts"}]})
    folder.dataset([{"response": "HEY"}, {"response": "hey"}])
    summary = folder.score(workers=workers)
    assert summary.criteria["loud"].mean == 0.5
    assert [result["results"][0]["evaluatorType"] for result in folder.results()] == ["shouts", "shouts"]


# -- the schema for editors


def test_the_json_schema_accepts_what_we_accept(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "schema", "scoring")
    schema = compile_schema(json.loads(said.out))
    example = Path(__file__).parents[2] / "examples" / "scoring" / "plan.yaml"
    older = {"evaluatorConfigs": PLAN["evaluators"], "$schema": "./scoring.schema.json"}
    several = {"extends": ["a.yaml", "b.yaml"], "only": "fast", "skip": ["llm"], "thresholds": {"a": 1}}
    for good in (PLAN, yaml.safe_load(example.read_text()), older, {"extends": "a.yaml"}, several):
        assert problems(schema, good) == []
    load_plan(folder.plan(older))
    for bad in (
        {"treshold": 1},
        {"criteria": [{"weight": 1}]},
        {"concurrency": 0},
        {"thresholds": {"a": 80}},
    ):
        assert problems(schema, bad)


@pytest.mark.parametrize("kind", ["scoring", "config"])
def test_schemas_are_plain_json(capsys: pytest.CaptureFixture[str], kind: str) -> None:
    said = command(capsys, "schema", kind)
    assert said.code == 0
    assert json.loads(said.out)["type"] == "object"


def test_an_unknown_schema_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = command(capsys, "schema", "nope")
    assert (said.code, "choose one of" in said.err) == (2, True)


def test_a_plan_without_models_asks_those_of_the_project(tmp_path: Path) -> None:
    judge = {"type": "llm-judge", "successCriteria": "It helps."}
    (tmp_path / "plan.json").write_text(json.dumps({"evaluators": [judge]}))
    job = ScoringJob(tmp_path / "data.jsonl", tmp_path / "plan.json")
    with pytest.raises(InvalidInput, match="asks a language model"):
        set_up(job)
    settings = LlmSettings.model_validate({"provider": "ours", "models": {"evaluation": "small"}})
    assert set_up(replace(job, llm_settings=settings)).plan.llm_settings == settings
