"""Replies that judges and people really give instead of what they were asked for, on every scale.

``strict_reading`` is written without the code under test: what may be made of a reply, read to the letter.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

SCALES: dict[str, dict[str, Any]] = {
    "binary": {"scale": "binary"},
    "pass/fail": {"scale": "pass/fail"},
    "likert5": {"scale": "likert5"},
    "numeric": {"scale": "numeric"},
    "numeric with a range": {"scale": "numeric", "range": [0, 10]},
    "labels": {"scale": "mood", "labels": {"good": 1.0, "fair": 0.5, "bad": 0.0}},
    "own range": {"scale": "stars", "range": [-1, 1]},
    "own words": {"scale": "verdict"},
}
# A score of each scale that holds.
FAVOURABLE: dict[str, str] = {
    "binary": "true",
    "pass/fail": "true",
    "likert5": "5",
    "numeric": "0.9",
    "numeric with a range": "9",
    "labels": '"good"',
    "own range": "0.8",
    "own words": '"pass"',
}

_NUMBERS = [
    "-1",
    "-0.0",
    "0",
    "0.08",
    "0.5",
    "0.8",
    "1",
    "1.0",
    "1.5",
    "2",
    "3",
    "4",
    "4.0",
    "4.5",
    "5",
    "5.000001",
    "6",
    "8",
    "10",
    "11",
    "50",
    "80",
    "100",
    "101",
    "1e0",
    "1e2",
    "1e400",
    "-1e400",
    "1.0000000001",
    "NaN",
    "Infinity",
    "-Infinity",
    "00",
    "05",
    "+1",
    ".5",
    "1.",
    "0x1",
    "1_0",
    "1,5",
    "0,8",
    "5/5",
    "80%",
    "½",
]
_WORDS = [
    "yes",
    "no",
    "YES",
    "No",
    "true",
    "false",
    "True",
    "TRUE",
    "pass",
    "fail",
    "PASS",
    "Pass",
    "good",
    "Good",
    "GOOD",
    "fair",
    "bad",
    "excellent",
    "poor",
    "maybe",
    "met",
    "not met",
    "null",
    "none",
    "N/A",
    "nan",
    "five",
    "IV",
    "A+",
    "４",
    "٤",
    "👍",
    "⭐⭐⭐⭐",
    "⭐",
]
_PHRASES = [
    " pass",
    "pass ",
    "pass.",
    "'pass'",
    "pass/fail",
    "not pass",
    "pass or fail",
    "good!",
    "good.",
    " good",
    "very good",
    "not good",
    "good or bad",
    "**good**",
    "8/10",
    "4/5",
    "4 / 5",
    "4 stars",
    "4 out of 5",
    "5 of 5",
    "80 %",
    "5 is best, I give 2",
    "2 (5 is best)",
    "between 4 and 5",
    "4-5",
    "1–5",
    "~4",
    "4?",
    "about 4",
    "score: 5",
    "Score 5/5",
    "<score>5</score>",
    "{score: 5}",
    "0.8/1",
    "0.8 of 1",
    "8 of 10",
    "1:1",
    "4 ⭐",
    "true.",
    '"true"',
    "yes!",
    "yes, but no",
    "true or false",
    "I cannot judge this.",
    "I refuse",
    "Sorry, as an AI I cannot",
    "",
]
_OTHERS = [
    "null",
    "[]",
    "{}",
    "[true]",
    "[5]",
    '["good"]',
    "[1,2]",
    '{"value":5}',
    '{"score":5}',
    '{"score":true}',
    '{"criterion_1":5}',
    "[[5]]",
    '{"good":1}',
    "true",
    "false",
]

SCORES: list[str] = list(
    dict.fromkeys(
        [
            *_NUMBERS,
            *(json.dumps(text) for text in (*_NUMBERS, *_WORDS, *_PHRASES)),
            *("yes", "True", "pass", "good", "undefined", "five"),
            *_OTHERS,
        ]
    )
)


def replies_around(field: str, score: str, rest: str = "") -> list[str]:
    """Replies with a favourable score in which something else is wrong."""
    pair = f'"{field}": {score}'
    reply = f'{{"reasoning": "r", {pair}{rest}}}'
    return [
        "",
        " ",
        "null",
        "[]",
        "{}",
        score,
        pair,
        f"[{reply}]",
        f"[{reply}, {reply}]",
        f"{reply}{reply}",
        f"{reply}\n{reply}",
        f"{reply},",
        f"{reply};",
        f"{reply}.",
        f"{reply} is my verdict",
        f"My verdict: {reply}",
        f"Here it is:\n```json\n{reply}\n```",
        f"```json\n{reply}\n```\nI hope it helps.",
        f"```json\n{reply}\n```\n```json\n{reply}\n```",
        f"```json\n{reply}",
        f"```json {reply} ```",
        f"`{reply}`",
        f"<answer>{reply}</answer>",
        f"<think>hm</think>{{}} {reply}",
        f"// verdict\n{reply}",
        f"json\n{reply}",
        f"({reply})",
        f"data: {reply}",
        json.dumps(reply),
        reply[:-1],
        reply[: len(reply) // 2],
        reply[1:],
        reply.replace('"', "'"),
        reply.replace('"', "“"),
        reply.replace(": ", " = "),
        reply.replace(", ", " "),
        reply.replace("}", ",}"),
        f"{{{pair}, {pair}{rest}}}",
        f'{{"reasoning": "r", {pair}, "{field}": 0{rest}}}',
        f'{{"reasoning": "r", {pair}, "{field.upper()}": 0{rest}}}',
        f'{{"reasoning": "r", "{field} ": {score}{rest}}}',
        f'{{"reasoning": "r", "{field.upper()}": {score}{rest}}}',
        f'{{"reasoning": "r", "verdict": {score}{rest}}}',
        f'{{"reasoning": "r", {pair}, "verdict": "no"{rest}}}',
        f'{{"reasoning": "r", {pair}, "overall": 1{rest}}}',
        f'{{"answer": {reply}}}',
        f'{{"reasoning": 5, {pair}{rest}}}',
        f'{{"reasoning": ["r"], {pair}{rest}}}',
        f'{{"reasoning": "r" {pair}{rest}}}',
        f'{{"reasoning": "say "no"", {pair}{rest}}}',
        f'{{"reasoning": "r", /* sure */ {pair}{rest}}}',
        "I'm sorry, but I can't help with that.",
        "The criteria are met.",
        "<html><body>502 Bad Gateway</body></html>",
        "{" * 2000,
        '{"a":' * 3000,
    ]


def replies_with(field: str, score: str, rest: str = "") -> list[str]:
    """Replies that are wrong in their score or around it. Those of them that are right are among them too."""
    plain = [f'{{"reasoning": "r", "{field}": {text}{rest}}}' for text in SCORES]
    return [*plain, *replies_around(field, score, rest)]


class _Twice(ValueError):
    pass


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _Twice
    return dict(pairs)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def strict_object(text: str) -> dict[str, Any] | None:
    """The one JSON object that a reply is, alone or alone in a fence."""
    bare = text.strip(" \t\r\n\ufeff")
    if fence := re.fullmatch(r"(```|~~~)[a-zA-Z]*[ \t]*\r?\n(.*)(?:\1)", bare, re.DOTALL):
        bare = fence[2].strip(" \t\r\n\ufeff")
    try:
        value = json.loads(bare, object_pairs_hook=_no_twins, parse_constant=_no_constant, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def strict_score(score: Any, criterion: dict[str, Any]) -> float | None:
    """The 0–1 value of a score that is exactly what its scale asks for."""
    scale, labels, bounds = criterion["scale"], criterion.get("labels"), criterion.get("range")
    if scale in ("binary", "pass/fail"):
        return {"True": 1.0, "False": 0.0}.get(str(score)) if isinstance(score, bool) else None
    if isinstance(score, bool):
        return None
    if scale == "likert5":
        return (score - 1) / 4 if isinstance(score, int | float) and score in (1, 2, 3, 4, 5) else None
    if labels:
        return labels.get(score) if isinstance(score, str) else None
    if scale == "numeric" or bounds:
        low, high = bounds or (0, 1)
        if not isinstance(score, int | float) or not math.isfinite(score) or not low <= score <= high:
            return None
        return (score - low) / (high - low)
    return {"pass": 1.0, "fail": 0.0}.get(score) if isinstance(score, str) else None


def strict_reading(text: str, criterion: dict[str, Any]) -> float | None:
    """The value a reply of one score has, or nothing where it is not what was asked for."""
    reply = strict_object(text)
    if reply is None or not {"score"} <= set(reply) <= {"reasoning", "score"}:
        return None
    if not isinstance(reply.get("reasoning"), str | None):
        return None
    return strict_score(reply["score"], criterion)


def strict_verdict(text: str, questions: tuple[str, ...]) -> dict[str, bool] | None:
    """The answers of a verdict to what was asked, or nothing."""
    reply = strict_object(text)
    if reply is None or not {"reasoning", *questions} <= set(reply):
        return None
    if not set(reply) <= {"reasoning", "evidence", "confidence", *questions}:
        return None
    confidence, evidence = reply.get("confidence"), reply.get("evidence")
    sound = [
        isinstance(reply["reasoning"], str) and bool(reply["reasoning"].strip()),
        confidence is None or (_is_number(confidence) and 0 <= confidence <= 1),
        evidence is None or (isinstance(evidence, list) and all(isinstance(q, str) for q in evidence)),
        *(isinstance(reply[question], bool) for question in questions),
    ]
    return {question: reply[question] for question in questions} if all(sound) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
