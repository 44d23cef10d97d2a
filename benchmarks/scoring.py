"""Scoring a dataset: CPU per record beside a plain loop, and what a second worker brings."""

from __future__ import annotations

import random
import re
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import orjson

from evalstudio.scoring.job import ScoringJob, score_dataset

from .measuring import BenchmarkLine, interleaved

RECORDS = 10_000
MOST_OF_FLOOR = 1.4
PLAN = """
criteria:
  - {name: long-enough, description: says something, scale: binary, weight: 2}
  - {name: close, description: near the reference, scale: numeric}
  - {name: clean, description: no bad words, scale: binary}
  - {name: complete, description: names what matters, scale: likert5}
evaluators:
  - {type: rule-based, config: {rules: [{criterionName: long-enough, type: length, min: 5}]}}
  - {type: lexical-similarity, config: {criterionName: close}}
  - {type: toxicity, config: {criterionName: clean, toxicTerms: [darn, heck]}}
  - {type: keyword-coverage, config: {criterionName: complete, expectedKeywords: [booking, reference]}}
"""
WORDS = "your booking reference is ready please come again darn thanks a lot for the call".split()  # noqa: SIM905


def write_dataset(path: Path, records: int) -> None:
    pick = random.Random(7)
    with open(path, "wb") as file:
        for number in range(records):
            row = {
                "id": f"r{number}",
                "prompt": "Please book a table for two.",
                "response": " ".join(pick.choices(WORDS, k=14)),
                "groundTruth": "your booking is ready, the reference is on its way",
            }
            file.write(orjson.dumps(row) + b"\n")


def measure() -> list[BenchmarkLine]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dataset, plan = folder / "records.jsonl", folder / "plan.yaml"
        write_dataset(dataset, RECORDS)
        plan.write_text(PLAN)
        job = ScoringJob(dataset, plan, folder / "results.jsonl")
        ours, floor = interleaved(lambda: score_dataset(job), lambda: _plain(dataset, folder / "plain.jsonl"))
        return [_per_record(ours, floor), _second_worker(folder, plan)]


def _per_record(ours: float, floor: float) -> BenchmarkLine:
    return BenchmarkLine(
        "scoring, CPU per record, four fast evaluators",
        f"{ours / RECORDS * 1e6:.0f} µs",
        f"{floor / RECORDS * 1e6:.0f} µs plain loop",
        f"{ours / floor:.2f} × of at most {MOST_OF_FLOOR} ×",
        ours <= MOST_OF_FLOOR * floor,
    )


def _second_worker(folder: Path, plan: Path) -> BenchmarkLine:
    """Wall time of one and of two workers; the time to start them is taken off by a tiny run."""
    dataset, tiny = folder / "many.jsonl", folder / "tiny.jsonl"
    write_dataset(dataset, RECORDS * 6)
    write_dataset(tiny, 10)
    seconds: dict[int, float] = {}
    for workers in (1, 2):
        best = min(_wall(dataset, plan, folder, workers) for _ in range(2))
        start = min(_wall(tiny, plan, folder, workers) for _ in range(2))
        seconds[workers] = best - start
    gain = seconds[1] / seconds[2]
    return BenchmarkLine(
        "scoring, two workers beside one",
        f"{RECORDS * 6 / seconds[2]:,.0f} records/s",
        f"{RECORDS * 6 / seconds[1]:,.0f} records/s",
        f"{gain:.2f} × of at least 1.6 ×",
        gain >= 1.6,
    )


def _wall(dataset: Path, plan: Path, folder: Path, workers: int) -> float:
    start = time.perf_counter()
    score_dataset(ScoringJob(dataset, plan, folder / "wall.jsonl", workers=workers))
    return time.perf_counter() - start


def _plain(dataset: Path, output: Path) -> None:
    """What a careful engineer would write for this one job."""
    toxic = [(term, re.compile(rf"\b{term}\b", re.IGNORECASE)) for term in ("darn", "heck")]
    keywords = [(word, re.compile(rf"\b{word}\b", re.IGNORECASE)) for word in ("booking", "reference")]
    with open(dataset, "rb") as rows, open(output, "wb") as file:
        for number, line in enumerate(rows, 1):
            row = orjson.loads(line)
            response = row["response"]
            length = len(response)
            similarity = _dice(response, row["groundTruth"])
            bad = [term for term, pattern in toxic if pattern.search(response)]
            found = [word for word, pattern in keywords if pattern.search(response)]
            scores = {
                "long-enough": 1.0 if length >= 5 else 0.0,
                "close": similarity,
                "clean": 0.0 if bad else 1.0,
                "complete": len(found) / len(keywords),
            }
            overall = (2 * scores["long-enough"] + scores["close"] + scores["clean"] + scores["complete"]) / 5
            success = length >= 5 and similarity >= 0.5 and not bad and scores["complete"] >= 0.5
            result = _line(row, number, overall, success, scores, length, similarity, bad, found)
            file.write(orjson.dumps(result) + b"\n")


def _line(
    row: dict[str, Any],
    number: int,
    overall: float,
    success: bool,
    scores: dict[str, float],
    length: int,
    similarity: float,
    bad: list[str],
    found: list[str],
) -> dict[str, Any]:
    missing = [word for word in ("booking", "reference") if word not in found]
    results = [
        ("long-enough", length >= 5, f"{length} characters", "rule-based", {"rule": "length"}),
        (
            "close",
            similarity,
            f"sorensen-dice similarity {similarity:.3f}, threshold 0.5",
            "lexical-similarity",
            {"algorithm": "sorensen-dice", "similarity": similarity},
        ),
        (
            "clean",
            not bad,
            f"found {bad}" if bad else "no toxic terms found",
            "toxicity",
            {"foundToxicTerms": bad},
        ),
        (
            "complete",
            1 + 4 * scores["complete"],
            f"{len(found)} of 2 keywords found",
            "keyword-coverage",
            {"foundKeywords": found, "missingKeywords": missing},
        ),
    ]
    return {
        "recordId": row["id"],
        "line": number,
        "overallScore": overall,
        "success": success,
        "outcome": "pass" if success else "fail",
        "reason": "All evaluators passed" if success else "failed",
        "evaluatorResults": [
            {
                "name": kind,
                "type": kind,
                "kind": "assertion",
                "outcome": "pass" if value >= 0.5 else "fail",
                "success": value >= 0.5,
                "value": value,
                "threshold": 0.5,
                "criterionName": name,
            }
            for (name, value), (_, _, _, kind, _) in zip(scores.items(), results, strict=True)
        ],
        "results": [
            {"criterionName": n, "score": s, "reasoning": r, "evaluatorType": t, "metadata": m}
            for n, s, r, t, m in results
        ],
        "criterionScores": scores,
        "metrics": {},
        "coverage": {
            "criteria": 4,
            "scored": 4,
            "missing": [],
            "unknown": [],
            "excluded": [],
            "errors": 0,
            "skipped": 0,
        },
        "runErrors": [],
        "timestamp": int(time.time() * 1000),
        "inputSnapshot": {"dataset": "records.jsonl", "recordId": row["id"], "line": number},
    }


def _dice(one: str, other: str) -> float:
    one, other = " ".join(one.lower().split()), " ".join(other.lower().split())
    first = Counter(one[i : i + 2] for i in range(len(one) - 1))
    second = Counter(other[i : i + 2] for i in range(len(other) - 1))
    return 2 * sum((first & second).values()) / (len(one) + len(other) - 2)
