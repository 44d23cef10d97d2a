"""Results made in one pass are those of the long way, whatever the record."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from evalstudio.scoring import direct as direct_module
from evalstudio.scoring import summary as summary_module
from evalstudio.scoring.direct import DirectResults
from evalstudio.scoring.job import ScoringJob, score_dataset
from evalstudio.scoring.summary import Duplicates

PLAN = """
criteria:
  - {name: long-enough, scale: binary, weight: 3}
  - {name: close, scale: numeric}
  - {name: clean, scale: string}
  - {name: complete, scale: likert5, weight: 0.5}
  - {name: graded, scale: stars, range: [0, 10]}
  - {name: custom, scale: stars, weight: 0}
  - {name: never-scored, scale: binary}
  - {name: measured, scale: numeric, range: [0, 100]}
metadata: {team: support}
evaluators:
  - type: rule-based
    config:
      rules:
        - {criterionName: long-enough, type: length, min: 5}
        - {criterionName: long-enough, type: includes, keywords: [booking, "ß"]}
        - {type: json_parse}
        - {type: regex, pattern: "^[a-z ]+$", sourceField: prompt}
  - {type: lexical-similarity, config: {criterionName: close}}
  - {type: lexical-similarity, name: graded, config: {algorithm: levenshtein, threshold: 0.9}}
  - {type: toxicity, config: {criterionName: clean, toxicTerms: [darn]}}
  - {type: keyword-coverage, config: {criterionName: complete, keywordsSourceField: context.words}}
  - {type: keyword-coverage, config: {criterionName: custom, expectedKeywords: [booking, reference]}}
  - {type: regex, config: {pattern: "BK-[0-9]+", mustMatch: false}}
  - {type: response-length, name: measured}
  - {type: latency}
  - {type: token-usage}
"""
ROWS: list[dict[str, Any]] = [
    {"response": "your booking reference is ready", "groundTruth": "your booking is ready"},
    {
        "id": "a",
        "response": "Darn, BK-17 straße booking",
        "prompt": "book it",
        "groundTruth": "x",
        "context": {"words": "book, it"},
        "metadata": {"cost": 0.25, "team": "mine"},
        "agentId": "one",
        "sessionId": "s",
    },
    {"id": 7, "response": "", "groundTruth": "", "context": {"words": []}},
    {"response": '{"reference": 1}', "groundTruth": None},
    {"response": "fine", "groundTruth": 12, "context": {"words": ["fine"]}},
    {"response": {"role": "assistant", "content": "a message"}, "groundTruth": "a message"},
    {"response": "with tokens", "tokensUsage": {"input_tokens": 3, "output_tokens": 4}, "latencyMs": 12.5},
    {"response": "x" * 101, "groundTruth": "x" * 101, "metadata": {"cost": -1}},
    {
        "response": "its own criteria",
        "groundTruth": "its own",
        "criteria": [{"name": "close", "scale": "numeric"}],
    },
    *({"response": "x" * length} for length in range(12)),
    {"response": "日本語の\u200bテキスト \u0000", "groundTruth": "日本語", "prompt": None, "context": None},
]


PLUGIN = """
from evalstudio import EvaluationResult, define_evaluator

def nested(depth):
    return {"in": nested(depth - 1)} if depth else {}

class Deep:
    def __init__(self, depth):
        self.depth = depth

    def to_json(self):
        return nested(self.depth)

@define_evaluator(type="odd", inline=True)
def odd(ctx):
    answers = [
        True,
        0.25,
        EvaluationResult(True, -0.0, "signed"),
        EvaluationResult(False, 0.0),
        EvaluationResult(True, 0.5, "deep", {"depth": nested(240)}),
        EvaluationResult(True, 0.5, "as deep as can be", {"depth": Deep(249)}),
        EvaluationResult(True, 0.5, "deeper", {"depth": Deep(250)}),
        EvaluationResult(True, 0.5, "much deeper", {"depth": Deep(252)}),
        EvaluationResult.skip("nothing to say"),
        {"criterionName": "undeclared", "score": True},
        [{"criterionName": "c", "score": 0.1}, {"criterionName": "c", "score": 0.4}],
        EvaluationResult(True, 1.0, metadata={"half": chr(0xD800), "large": 2**70}),
        7,
    ]
    return answers[len(ctx.response) % len(answers)]

@define_evaluator(type="signed", kind="metric", inline=True)
def signed(ctx):
    return [-0.0, 0.0, 3, 1e22, float("nan")][len(ctx.response) % 5]
"""
ODD_PLAN = """
plugins: [./odd.py]
criteria: [{name: c, scale: numeric}, {name: d, scale: likert5, weight: 0}]
evaluators:
  - {type: odd}
  - {type: odd, name: c}
  - {type: signed}
  - {type: regex, gate: eventually, name: d, config: {pattern: x}}
  - {type: rule-based, config: {rules: [{type: includes, keywords: [zzz, zzz]}]}}
"""


def _scored(folder: Path, plan: str, name: str) -> tuple[list[dict[str, Any]], Any]:
    (folder / "plan.yaml").write_text(plan)
    (folder / "odd.py").write_text(PLUGIN)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    output = folder / name
    job = ScoringJob(folder / "rows.jsonl", folder / "plan.yaml", output, group_by="team")
    summary, _ = score_dataset(job)
    # Bytes, so that the order of fields counts too; only the clock may differ.
    lines = [orjson.loads(line) for line in output.read_bytes().splitlines()]
    return [{key: item for key, item in line.items() if key != "timestamp"} for line in lines], summary


def test_one_pass_gives_the_results_of_the_long_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []
    result = DirectResults.result

    def told(self: DirectResults, *given: Any) -> Any:
        direct = result(self, *given)
        made.append(direct is not None)
        return direct

    plain = PLAN.replace("  - {type: latency}\n  - {type: token-usage}\n", "")
    for number, plan in enumerate(
        (PLAN, plain, plain.replace("keywordsSourceField: context.words", "expectedKeywords: [a]"), ODD_PLAN)
    ):
        monkeypatch.setattr(DirectResults, "result", told)
        direct, summary = _scored(tmp_path, plan, f"direct {number}")
        monkeypatch.setattr(DirectResults, "result", lambda *_: None)
        generic, expected = _scored(tmp_path, plan, f"generic {number}")
        assert [orjson.dumps(line) for line in direct] == [orjson.dumps(line) for line in generic]
        assert summary.to_json() == expected.to_json()
    assert any(made)
    assert not all(made)


# Nothing but yes and no, so that what all checks say together comes again.
PLAIN_PLAN = """
criteria: [{name: close, scale: numeric}]
evaluators:
  - {type: regex, name: word, config: {pattern: "booking|x"}}
  - {type: regex, name: none, config: {pattern: "BK-[0-9]+", mustMatch: false}}
  - {type: rule-based, config: {rules: [{type: includes, keywords: [booking]}]}}
  - {type: lexical-similarity, config: {criterionName: close, referenceField: groundTruth}}
"""


@pytest.mark.parametrize("most", [2_000, 1])
def test_what_comes_again_is_said_again(most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_module, "_MOST_COMBINED", most)
    said = ["a booking", "BK-1", "x", "nothing", "a booking", "x", "a booking", "nothing"]
    rows = [{"id": f"r{n}", "response": text, "groundTruth": "a booking"} for n, text in enumerate(said * 3)]
    monkeypatch.setattr(sys.modules[__name__], "ROWS", rows)
    direct, summary = _scored(tmp_path, PLAIN_PLAN, "direct")
    monkeypatch.setattr(DirectResults, "result", lambda *_: None)
    generic, expected = _scored(tmp_path, PLAIN_PLAN, "generic")
    assert [orjson.dumps(line) for line in direct] == [orjson.dumps(line) for line in generic]
    assert summary.to_json() == expected.to_json()


def test_ids_are_remembered_alike_one_by_one_and_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary_module, "MOST_IDS", 5)
    parts = [
        [("a", 1), ("b", 2)],
        [("c", 3), ("c", 4)],
        [],
        [("d", 5), ("b", 6)],
        [("e", 7), ("f", 8), ("f", 9)],
    ]
    together, one_by_one = Duplicates(), Duplicates()
    for part in parts:
        together.add_all(part)
        for record_id, line in part:
            one_by_one.add(record_id, line)
    assert together == one_by_one
    assert together.examples == ['"c" (line 4)', '"b" (line 6)']
