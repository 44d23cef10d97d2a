"""Scoring one record: which evaluators run, what their results come to, and what is left visible."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from pydantic import BaseModel

from evalstudio import EvaluationResult, EvaluatorContext, Plugin, create_registry, define_evaluator
from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.records import CriterionResult, EvaluationInput
from evalstudio.scoring.config import EvaluationRunConfig
from evalstudio.scoring.runner import EvaluationRunner, run_evaluation, run_evaluation_sync

RECORD = {"prompt": "Hi?", "response": "Hello there", "groundTruth": "Hello there"}
YES = {"name": "ok", "description": "it is fine", "scale": "binary"}
LENGTH = {"type": "rule-based", "config": {"rules": [{"criterionName": "ok", "type": "length", "min": 3}]}}


def length_entry(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "response-length", "name": name, **more}


async def score(*entries: Any, criteria: Any = (YES,), record: Any = RECORD, **settings: Any) -> Any:
    given = {"evaluatorConfigs": list(entries), "criteria": list(criteria)}
    kept = {key: settings.pop(key) for key in ("registry", "llm", "embedder", "storage") if key in settings}
    return await run_evaluation(record, {**given, **settings}, **kept)


@define_evaluator(type="raises")
def raises(ctx: EvaluatorContext[Any]) -> EvaluationResult:
    raise RuntimeError("boom")


@define_evaluator(type="sleeps", timeout=0.05)
async def sleeps(ctx: EvaluatorContext[Any]) -> EvaluationResult:
    await asyncio.sleep(60)
    return EvaluationResult.passed()


@define_evaluator(type="holds", inline=True)
def holds(ctx: EvaluatorContext[Any]) -> bool:
    return True


# -- which evaluators run

MIXED = [
    {"type": "Toxicity", "config": {"toxicTerms": ["darn"]}},
    {"type": "lexical-similarity"},
    {"type": "response-length", "name": "how-long"},
    {"type": "NLPAccuracy"},
]


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({}, ["Toxicity", "lexical-similarity", "response-length", "NLPAccuracy"]),
        ({"only": ["fast"]}, ["Toxicity", "lexical-similarity", "response-length"]),
        ({"only": "fast"}, ["Toxicity", "lexical-similarity", "response-length"]),
        ({"only": ["metric"]}, ["response-length"]),
        ({"only": ["assertion"], "skip": ["embedding"]}, ["Toxicity", "lexical-similarity"]),
        ({"only": ["Toxicity"]}, ["Toxicity"]),
        ({"only": ["toxicity", "NLPAccuracy"]}, ["Toxicity", "NLPAccuracy"]),
        ({"only": ["how-long"]}, ["response-length"]),
        ({"skip": ["fast"]}, ["NLPAccuracy"]),
        ({"skip": ["LexicalSimilarity", "how-long"]}, ["Toxicity", "NLPAccuracy"]),
    ],
)
def test_only_and_skip_choose_by_type_kind_cost_name_and_legacy_name(
    settings: dict[str, Any], left: list[str]
) -> None:
    runner = EvaluationRunner({"evaluatorConfigs": MIXED, **settings})
    assert [one.given_type for one in runner.resolved] == left


@pytest.mark.parametrize("settings", [{"only": ["llm"]}, {"skip": ["fast", "embedding"]}])
def test_a_choice_that_leaves_nothing_to_run_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="leave no evaluator"):
        EvaluationRunner({"evaluatorConfigs": MIXED, **settings})


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([], "at least one evaluator"),
        ([{"config": {}}], r"evaluatorConfigs\[0\].type: is missing"),
        ([{"type": 5}], "type: is missing"),
        ([LENGTH, {"type": "lexical-similarty"}], r"evaluatorConfigs\[1\].*did you mean lexical-similarity"),
        ([{"type": "regex", "config": {"pattern": "("}}], r"evaluatorConfigs\[0\].config: bad pattern"),
        ([{"type": "regex", "config": "abc"}], "config: expected an object"),
        ([{"type": "toxicity", "name": 4}], "name: expected text"),
        ([{"type": "latency", "name": "a"}, {"type": "regex", "pattern": "x", "name": "a"}], "twice"),
        ([42], "expected an object with a type"),
        (["toxicity"], "expected an object with a type"),
    ],
)
async def test_a_wrong_entry_is_refused_before_anything_runs(entries: list[Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        await score(*entries)


@pytest.mark.parametrize("field", ["evaluatorConfig", "concurency"])
async def test_an_unknown_setting_is_refused_by_name(field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        await score(LENGTH, **{field: 1})


async def test_an_input_without_a_response_is_refused() -> None:
    with pytest.raises(InvalidInput, match="response"):
        await score(LENGTH, record={"prompt": "Hi?"})


async def test_two_criteria_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidInput, match="declared twice"):
        await score(LENGTH, criteria=[YES, YES])


# -- entries in every accepted shape


async def test_entries_may_be_objects_definitions_entries_and_classes() -> None:
    result = await score(LENGTH, holds, holds.use(name="again"), Stated, Stated(True))
    assert [item.evaluator_type for item in result.results] == [
        "rule-based",
        "holds",
        "holds",
        "stated",
        "stated",
    ]
    assert result.success


async def test_the_older_shape_has_its_settings_beside_the_type() -> None:
    flat = {"type": "RuleBased", "rules": [{"criterionName": "ok", "type": "length", "min": 3}]}
    result = await score(flat)
    assert result.overall_score == 1.0
    assert result.results[0].evaluator_type == "RuleBased"


async def test_evaluators_of_plugins_are_used_like_any_other() -> None:
    registry = create_registry()
    registry.register(Plugin(evaluators=[holds, Stated]), "mine")
    result = await score(
        {"type": "holds"}, {"type": "stated", "config": {"answer": False}}, registry=registry
    )
    assert [item.score for item in result.results] == [True, False]
    assert result.outcome == "fail"


async def test_a_config_model_and_a_record_model_are_taken_as_they_are() -> None:
    config = EvaluationRunConfig.model_validate({"evaluatorConfigs": [LENGTH], "criteria": [YES]})
    result = await run_evaluation(EvaluationInput.model_validate(RECORD), config)
    assert result.overall_score == 1.0


async def test_criteria_of_the_record_go_before_those_of_the_config() -> None:
    other = {**YES, "name": "other"}
    result = await score(LENGTH, criteria=[other], record={**RECORD, "criteria": [YES]})
    assert result.criterion_scores == {"ok": 1.0}


# -- class-style evaluators


class Stated:
    """Says what it was told to say."""

    type = "stated"

    def __init__(self, answer: bool = True) -> None:
        self.answer = answer

    async def evaluate(self, record: Any, criteria: list[Any]) -> list[CriterionResult]:
        return [CriterionResult("ok", self.answer, "as told")]


def class_style(answer: Any) -> Any:
    class Fixed:
        type = "fixed"

        def evaluate(self, record: Any, criteria: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    return Fixed()


async def test_a_class_gets_its_config_as_arguments() -> None:
    registry = create_registry()
    registry.register(Stated)
    result = await score({"type": "stated", "config": {"answer": False}}, registry=registry)
    assert result.results[0].score is False
    with pytest.raises(InvalidInput, match=r"evaluatorConfigs\[0\].config: .*unexpected"):
        await score({"type": "stated", "config": {"anser": 1}}, registry=registry)


async def test_an_object_takes_no_config() -> None:
    registry = create_registry()
    registry.register(Stated(True))
    with pytest.raises(InvalidInput, match="takes no config"):
        await score({"type": "stated", "config": {"answer": False}}, registry=registry)


async def test_a_class_sees_the_record_and_the_criteria() -> None:
    seen: list[Any] = []

    class Looks:
        type = "looks"

        async def evaluate(self, record: Any, criteria: Any) -> list[Any]:
            seen.append((record.response, record.ground_truth, record.prompt, [c.name for c in criteria]))
            return []

    result = await score(Looks())
    assert seen == [("Hello there", "Hello there", "Hi?", ["ok"])]
    assert [(item.skipped, item.reasoning) for item in result.results] == [(True, "returned no result")]
    assert result.coverage.missing == ["ok"]


async def test_results_may_be_dicts_in_either_spelling() -> None:
    answer = [
        {"criterionName": "ok", "score": "yes", "reasoning": "fine", "metadata": {"a": 1}},
        {"criterion_name": "ok", "score": 0, "reason": "not fine"},
    ]
    result = await score(class_style(answer))
    assert [(item.score, item.reasoning) for item in result.results] == [("yes", "fine"), (0, "not fine")]
    assert result.overall_score == 0.5
    assert result.results[0].metadata == {"a": 1}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (RuntimeError("boom"), "boom"),
        (None, "expected a list of results"),
        ("fine", "expected a list of results"),
        ([5], "not a result with a criterionName"),
        ([{"score": 1}], "not a result with a criterionName"),
        ([{"criterionName": "ok", "score": [1, 2]}], "score is a list"),
        ([{"criterionName": "ok", "score": 1, "error": {"code": 3}}], "error is a dict"),
        ([EvaluationResult(True, reason=5)], "reason is a int"),  # pyright: ignore[reportArgumentType]
        ([EvaluationResult(True, metadata=None)], "metadata is nothing"),  # pyright: ignore[reportArgumentType]
        ([EvaluationResult(True, criterion_name=["ok"])], "criterion_name is a list"),  # pyright: ignore[reportArgumentType]
    ],
)
async def test_nonsense_from_a_class_is_its_own_error_and_nobody_elses(answer: Any, message: str) -> None:
    result = await score(class_style(answer), LENGTH)
    assert result.results[0].error is not None
    assert message in result.results[0].error
    assert "score" not in result.results[0].to_json()
    assert result.results[1].score is True
    assert result.overall_score == 1.0
    assert result.coverage.errors == 1


async def test_a_score_on_an_undeclared_criterion_is_an_error_and_shown_as_unknown() -> None:
    result = await score(class_style([{"criterionName": "tone", "score": 4}]), LENGTH)
    assert result.results[0].criterion_name == "tone"
    assert result.results[0].error is not None
    assert 'no criterion is named "tone"' in result.results[0].error
    assert result.coverage.unknown == ["tone"]
    assert result.overall_score == 1.0
    assert result.outcome == "error"


async def test_a_score_too_large_for_any_float_is_left_out_and_counted() -> None:
    result = await score(
        class_style([{"criterionName": "ok", "score": 10**400}]), criteria=[{**YES, "scale": "numeric"}]
    )
    assert result.overall_score is None
    assert result.coverage.excluded[0]["reason"] == "not a finite number"
    assert result.outcome == "error"
    assert "not a finite number" in result.reason


# -- concurrency, timeouts and errors


@pytest.mark.parametrize("limit", [1, 3])
async def test_no_more_evaluators_wait_at_once_than_allowed(limit: int) -> None:
    inside = peak = 0

    @define_evaluator
    async def waits(ctx: EvaluatorContext[Any]) -> bool:
        nonlocal inside, peak
        inside += 1
        peak = max(peak, inside)
        await asyncio.sleep(0.01)
        inside -= 1
        return True

    result = await score(*[waits.use(name=f"w{number}") for number in range(7)], concurrency=limit)
    assert peak == limit
    assert len(result.results) == 7


async def test_one_failing_evaluator_never_costs_another_its_result() -> None:
    result = await score(raises, sleeps, LENGTH, class_style(ValueError("bad")), holds)
    assert [bool(item.error) for item in result.results] == [True, True, False, True, False]
    expected = ["raises: RuntimeError: boom (", "sleeps: timed out after 0.05 s", "fixed: ValueError: bad ("]
    assert all(text.startswith(start) for text, start in zip(result.run_errors, expected, strict=True))
    assert result.coverage.errors == 3
    assert result.overall_score == 1.0
    assert result.outcome == "error"
    assert not result.success


async def test_a_failure_outweighs_an_error() -> None:
    long = {"type": "rule-based", "config": {"rules": [{"criterionName": "ok", "type": "length", "min": 99}]}}
    assert (await score(raises, long)).outcome == "fail"


async def test_an_error_on_a_criterion_is_counted_and_leaves_it_uncovered() -> None:
    similar = {"type": "lexical-similarity", "config": {"criterionName": "ok"}}
    result = await score(similar, record={"response": "Hello"})
    assert result.results[0].error is not None
    assert result.overall_score is None
    assert result.coverage.to_json() == {
        "criteria": 1,
        "scored": 0,
        "missing": ["ok"],
        "unknown": [],
        "excluded": [],
        "errors": 1,
        "skipped": 0,
    }


async def test_a_blocking_evaluator_runs_beside_the_others() -> None:
    here = threading.get_ident()
    seen: list[int] = []

    @define_evaluator
    def blocks(ctx: EvaluatorContext[Any]) -> bool:
        seen.append(threading.get_ident())
        return True

    await score(blocks)
    assert seen != [here]


# -- what scores come to


async def test_an_unnamed_result_of_an_entry_named_like_a_criterion_scores_it() -> None:
    criteria = [{"name": "close", "scale": "likert5"}, {"name": "long", "scale": "numeric", "range": [0, 22]}]
    result = await score(
        {"type": "lexical-similarity", "name": "close"}, length_entry("long"), criteria=criteria
    )
    assert [(item.criterion_name, item.score) for item in result.results] == [("close", 5.0), ("long", 11.0)]
    assert result.criterion_scores == {"close": 1.0, "long": 0.5}
    assert result.metrics == {"long": 11.0}


async def test_on_a_yes_no_scale_the_evaluators_own_threshold_decides() -> None:
    record = {"response": "abcdef", "groundTruth": "abcxyz"}
    entry = {"type": "lexical-similarity", "name": "ok", "config": {"algorithm": "levenshtein"}}
    lenient = await score({**entry, "config": {**entry["config"], "threshold": 0.4}}, record=record)
    strict = await score({**entry, "config": {**entry["config"], "threshold": 0.6}}, record=record)
    assert (lenient.results[0].score, lenient.success) == (True, True)
    assert (strict.results[0].score, strict.success) == (False, False)


async def test_a_skip_is_neither_score_nor_failure_and_is_counted() -> None:
    @define_evaluator
    def skips(ctx: EvaluatorContext[Any]) -> EvaluationResult:
        return EvaluationResult.skip("not this time")

    result = await score(skips.use(name="ok"))
    assert result.coverage.skipped == 1
    assert result.coverage.missing == ["ok"]
    assert result.results[0].to_json()["skipped"] is True
    assert "score" not in result.results[0].to_json()
    assert (result.outcome, result.success) == ("unasserted", False)


async def test_an_unbounded_sum_needs_a_range() -> None:
    entry = {"type": "Sentiment", "config": {"criterionName": "mood", "outputType": "rawScore"}}
    happy = {"response": "great, wonderful, lovely"}
    bare = await score(entry, criteria=[{"name": "mood", "scale": "numeric"}], record=happy)
    ranged = await score(
        entry, criteria=[{"name": "mood", "scale": "numeric", "range": [-10, 10]}], record=happy
    )
    assert bare.overall_score is None
    assert "range" in bare.coverage.excluded[0]["reason"]
    assert (bare.outcome, ranged.outcome) == ("error", "unasserted")
    assert 'could not score "mood"' in bare.reason
    assert ranged.overall_score == pytest.approx(1.0)


# -- storage


class Kept:
    def __init__(self, error: Exception | None = None) -> None:
        self.results: list[Any] = []
        self.error = error

    async def save_result(self, result: Any) -> None:
        if self.error is not None:
            raise self.error
        self.results.append(result)


async def test_the_result_is_saved_once_and_whole() -> None:
    storage = Kept()
    result = await score(LENGTH, storage=storage)
    assert storage.results == [result]
    assert result.evaluation_config_snapshot["storageProviderType"] == "Kept"


@pytest.mark.parametrize("storage", [object(), Kept, {"save_result": print}])
def test_storage_that_cannot_save_is_refused_up_front(storage: Any) -> None:
    with pytest.raises(TypeError, match="save_result"):
        EvaluationRunner({"evaluatorConfigs": [LENGTH]}, storage=storage)


async def test_storage_that_fails_is_visible_and_costs_nothing_else() -> None:
    result = await score(LENGTH, storage=Kept(OSError("disk full")))
    assert result.run_errors == ["Kept could not save the result: disk full"]
    assert result.overall_score == 1.0


async def test_storage_with_a_plain_method_works_too() -> None:
    class Plain:
        saved: Any = None

        def save_result(self, result: Any) -> None:
            self.saved = result

    storage = Plain()
    result = await score(LENGTH, storage=storage)
    assert storage.saved is result
    assert result.run_errors == []


# -- snapshots and JSON


async def test_the_snapshot_is_a_copy() -> None:
    record: dict[str, Any] = {**RECORD, "context": {"order": {"id": 1}}, "metadata": {"tags": ["a"]}}
    given = EvaluationInput.model_validate(record)
    result = await score(LENGTH, record=given)
    given.context["order"]["id"] = 2
    given.metadata["tags"].append("b")
    record["context"]["order"]["id"] = 3
    shown = result.to_json()["inputSnapshot"]
    assert shown["context"] == {"order": {"id": 1}}
    assert shown["metadata"] == {"tags": ["a"]}
    assert shown["groundTruth"] == "Hello there"


async def test_an_evaluator_that_changes_the_record_does_not_change_the_snapshot() -> None:
    class Meddles:
        type = "meddles"

        async def evaluate(self, record: Any, criteria: Any) -> list[Any]:
            record.context["order"]["id"] = "changed"
            return []

    result = await score(Meddles(), record={**RECORD, "context": {"order": {"id": 1}}})
    assert result.to_json()["inputSnapshot"]["context"] == {"order": {"id": 1}}


async def test_a_record_that_cannot_be_copied_is_still_scored() -> None:
    lock = threading.Lock()
    result = await score(LENGTH, record={**RECORD, "context": {"lock": lock}})
    assert result.overall_score == 1.0
    assert "lock" in result.to_json()["inputSnapshot"]["context"]["lock"]


async def test_a_result_in_json_has_the_names_of_the_spec() -> None:
    record = {**RECORD, "agentId": "a-1", "sessionId": "s-1"}
    result = await score(LENGTH, record=record, metadata={"build": 7})
    shown = result.to_json()
    assert set(shown) == {
        "overallScore",
        "success",
        "outcome",
        "reason",
        "evaluatorResults",
        "results",
        "criterionScores",
        "metrics",
        "coverage",
        "runErrors",
        "timestamp",
        "inputSnapshot",
        "agentId",
        "sessionId",
        "evaluationConfigSnapshot",
        "metadata",
    }
    assert shown["metadata"] == {"build": 7}
    assert shown["evaluationConfigSnapshot"] == {
        "evaluatorTypes": ["rule-based"],
        "criteriaNames": ["ok"],
        "storageProviderType": "none",
        "metadataKeys": ["build"],
    }
    assert shown["results"] == [
        {
            "criterionName": "ok",
            "score": True,
            "reasoning": "11 characters",
            "evaluatorType": "rule-based",
            "metadata": {"rule": "length"},
        }
    ]


# -- the sync twin and reuse


def test_the_sync_twin_works_in_plain_code() -> None:
    assert run_evaluation_sync(RECORD, {"evaluatorConfigs": [LENGTH], "criteria": [YES]}).overall_score == 1.0


async def test_the_sync_twin_works_inside_a_running_loop() -> None:
    assert run_evaluation_sync(RECORD, {"evaluatorConfigs": [LENGTH], "criteria": [YES]}).overall_score == 1.0
    with pytest.raises(InvalidInput):
        run_evaluation_sync(RECORD, {"evaluatorConfigs": []})


async def test_one_runner_scores_many_records_at_once() -> None:
    class Shape(BaseModel):
        least: int = 3

    @define_evaluator(config=Shape)
    async def long_enough(ctx: EvaluatorContext[Shape]) -> bool:
        await asyncio.sleep(0)
        return len(ctx.response) >= ctx.config.least

    runner = EvaluationRunner({"evaluatorConfigs": [long_enough], "criteria": [YES]})
    results = await asyncio.gather(*(runner.run({"response": "x" * number}) for number in range(20)))
    assert [result.success for result in results] == [number >= 3 for number in range(20)]


@pytest.mark.parametrize(
    "response",
    [
        "",
        " ",
        "日本語 🎌",
        "a\0b",
        "x" * 1_000_000,
        {"role": "assistant", "content": "Hello"},
        5,
        None,
        ["a"],
        {"a": 1},
    ],
)
async def test_whatever_the_response_is_it_ends_with_a_result(response: Any) -> None:
    result = await score(LENGTH, raises, record={"response": response})
    assert len(result.results) == 2
    assert result.to_json()["results"]


# -- what every evaluator came to, and names nobody declared


async def test_a_result_says_what_every_evaluator_came_to() -> None:
    @define_evaluator
    def silent(ctx: EvaluatorContext[Any]) -> list[EvaluationResult]:
        return []

    similar = {"type": "LexicalSimilarity", "config": {"threshold": 0.8}}
    result = await score(similar, LENGTH, raises, length_entry("long"), silent)
    rows = [(row.name, row.type, row.kind, row.outcome, row.success) for row in result.evaluator_results]
    assert rows == [
        ("lexical-similarity", "LexicalSimilarity", "assertion", "pass", True),
        ("rule-based", "rule-based", "assertion", "pass", True),
        ("raises", "raises", "assertion", "error", False),
        ("long", "response-length", "metric", "measured", None),
        ("silent", "silent", "assertion", "skipped", None),
    ]
    assert result.evaluator_results[0].threshold == 0.8
    assert result.evaluator_results[1].criterion_name == "ok"
    assert result.evaluator_results[4].reason == "returned no result"
    assert 'Evaluator "raises": RuntimeError: boom' in result.reason


async def test_a_misspelled_criterion_is_refused_wherever_it_is_written() -> None:
    beside = {"type": "lexical-similarity", "criterionName": "okay"}
    within = {"type": "lexical-similarity", "config": {"criterionName": "okay"}}
    for entry, path in ((beside, "criterionName"), (within, "config.criterionName")):
        with pytest.raises(InvalidInput) as caught:
            await score(entry)
        assert str(caught.value) == (
            f'evaluatorConfigs[0].{path}: "okay" is not among the criteria; did you mean ok?'
        )


async def test_a_records_own_criteria_may_leave_out_some_of_the_configs() -> None:
    other = {"type": "lexical-similarity", "config": {"criterionName": "other"}}
    criteria = [YES, {**YES, "name": "other"}]
    result = await score(LENGTH, other, criteria=criteria, record={**RECORD, "criteria": [YES]})
    assert result.outcome == "pass"
    left_out = result.evaluator_results[1]
    assert (left_out.outcome, left_out.reason) == (
        "skipped",
        '"other" is not among the criteria of this record',
    )


async def test_a_name_in_no_criteria_at_all_is_an_error_of_the_record() -> None:
    unknown = {"type": "lexical-similarity", "config": {"criterionName": "okay"}}
    result = await score(LENGTH, unknown, criteria=(), record={**RECORD, "criteria": [YES]})
    assert (result.outcome, result.coverage.unknown) == ("error", ["okay"])
    assert result.reason == '"okay" is not among the criteria; did you mean ok?'


async def test_a_model_embeds_too_where_it_can() -> None:
    asked: list[str] = []

    class Model:
        async def answer(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("nobody asks")

        async def embed(self, texts: Any, *, model: str | None = None) -> list[list[float]]:
            asked.extend(texts)
            return [[1.0, 0.0] for _ in texts]

    record = {"response": "a", "groundTruth": "b"}
    result = await score({"type": "nlp-accuracy"}, record=record, llm=Model())
    assert asked == ["a", "b"]
    assert result.outcome == "pass"
