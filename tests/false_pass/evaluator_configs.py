"""Checks that could only pass, and data that is not there to be checked."""

from __future__ import annotations

from typing import Any

from .table import Came, Expected, live, recorded, row


def refused(name: str, attempt: str, kind: str, config: dict[str, Any], says: str, **fields: Any) -> None:
    """A row whose check is refused when it is loaded, live and recorded alike."""

    async def run() -> Came:
        check = {"type": kind, "config": config, **fields}
        scored = await recorded({"response": "Hello", "groundTruth": "Hello"}, check)
        return await live(lambda messages: "Hello", check) if scored.outcome == "refused" else scored

    run.__name__ = name
    row("definition", attempt, expect="refused", says=says)(run)


def rules(*each: dict[str, Any]) -> dict[str, Any]:
    return {"rules": list(each)}


refused("no_rules", "A rule-based check has no rules", "rule-based", rules(), "rules")
refused(
    "includes_nothing",
    "An includes rule has no keywords",
    "rule-based",
    rules({"type": "includes", "keywords": [], "expectedOutcome": "none"}),
    "keywords",
)
refused(
    "includes_blank",
    "An includes rule looks for a blank",
    "rule-based",
    rules({"type": "includes", "keywords": [" "]}),
    "must not be blank",
)
refused(
    "length_from_zero",
    "A length rule asks for at least 0 characters",
    "rule-based",
    rules({"type": "length", "min": 0}),
    "min 0 without max holds for any text",
)
refused(
    "count_from_zero",
    "A keyword_count rule asks for at least 0 occurrences",
    "rule-based",
    rules({"type": "keyword_count", "keywords": ["a"], "min": 0}),
    "min 0 without max holds for any text",
)
refused(
    "rule_pattern_matches_all",
    "A regex rule has a pattern that matches any text",
    "rule-based",
    rules({"type": "regex", "pattern": ".*"}),
    "would always pass",
)
refused("empty_pattern", "A regex has an empty pattern", "regex", {"pattern": ""}, "must not be blank")
refused(
    "empty_forbidden_pattern",
    "A regex that must not match has a blank pattern",
    "regex",
    {"pattern": " ", "mustMatch": False},
    "must not be blank",
)
refused(
    "optional_pattern",
    "A regex asks for any number of digits, none included",
    "regex",
    {"pattern": r"\d*"},
    "would always pass",
)
refused(
    "unanchored_lookahead",
    "A regex means to exclude a word but matches at the end of any text",
    "regex",
    {"pattern": "(?!.*refund)"},
    "would always pass",
)
refused(
    "optional_start",
    "A regex asks for an optional word at the start",
    "regex",
    {"pattern": "^(sorry)?"},
    "would always pass",
)
refused(
    "dollar",
    "A regex asks for the end of the text and nothing else",
    "regex",
    {"pattern": "x*$"},
    "would always pass",
)
refused(
    "no_keywords",
    "Keyword coverage has no keywords",
    "keyword-coverage",
    {"expectedKeywords": []},
    "expectedKeywords",
)
refused(
    "invisible_keyword",
    "Keyword coverage looks for a zero-width character",
    "keyword-coverage",
    {"expectedKeywords": ["\u200b"]},
    "must not be blank",
)
refused(
    "own_keywords",
    "Keyword coverage takes its keywords from the response itself",
    "keyword-coverage",
    {"keywordsSourceField": "response"},
    "always agrees with itself",
)
refused(
    "coverage_of_nothing",
    "Keyword coverage is enough from 0 up",
    "keyword-coverage",
    {"expectedKeywords": ["sorry"], "threshold": 0},
    "threshold",
)
refused(
    "similarity_of_nothing",
    "Similarity is enough from 0 up",
    "lexical-similarity",
    {"threshold": 0},
    "threshold",
)
refused(
    "similar_to_itself",
    "The response is compared with itself",
    "lexical-similarity",
    {"referenceField": "response"},
    "always agrees with itself",
)
refused(
    "meaning_of_nothing",
    "Closeness in meaning is enough from 0 up",
    "nlp-accuracy",
    {"threshold": 0},
    "threshold",
)
refused(
    "means_itself",
    "The meaning of the response is compared with its own",
    "nlp-accuracy",
    {"referenceField": "response"},
    "always agrees with itself",
)
refused("no_terms", "Toxicity has no terms", "toxicity", {"toxicTerms": []}, "toxicTerms")
refused(
    "blank_term",
    "Toxicity looks for a zero-width term",
    "toxicity",
    {"toxicTerms": ["\u200b"]},
    "must not be blank",
)
refused(
    "any_state",
    "The expected state is part of any state",
    "state-match",
    {"expected": {}},
    "part of any state",
)
refused("no_tool_rules", "Tool usage has no rules", "tool-usage", rules(), "rules")
refused(
    "zero_calls_at_least",
    "A tool rule asks for at least 0 calls",
    "tool-usage",
    rules({"tool": "search", "minCalls": 0}),
    "asks for nothing",
)
refused(
    "gate_on_a_metric", "A metric has a gate", "response-length", {}, "a metric has no gate", gate="always"
)


def absent(
    name: str,
    attempt: str,
    kind: str,
    config: dict[str, Any],
    record: dict[str, Any],
    says: str,
    expect: Expected = "error",
) -> None:
    """A row whose record lacks what its check should look at."""

    async def run() -> Came:
        return await recorded(record, {"type": kind, "config": config})

    run.__name__ = name
    row("data", attempt, expect=expect, says=says)(run)


FORBIDDEN = rules({"tool": "delete", "forbidden": True}) | {"toolDataSource": "context"}
FROM_LIST = {"keywordsSourceField": "groundTruth"}

absent(
    "no_calls_in_context",
    "Tool calls should be in the context and are not",
    "tool-usage",
    FORBIDDEN,
    {"response": "x"},
    "no list context.toolCalls",
)
absent(
    "null_calls",
    "The context's toolCalls is null",
    "tool-usage",
    FORBIDDEN,
    {"response": "x", "context": {"toolCalls": None}},
    "no list context.toolCalls",
)
absent(
    "calls_as_text",
    "The context's toolCalls is a text",
    "tool-usage",
    FORBIDDEN,
    {"response": "x", "context": {"toolCalls": "none"}},
    "not a list",
)
absent(
    "call_without_name",
    "A call in the context has no name",
    "tool-usage",
    FORBIDDEN,
    {"response": "x", "context": {"toolCalls": [{"args": {}}]}},
    "is not a call",
)
absent(
    "number_keyword",
    "A keyword in the record is a number",
    "keyword-coverage",
    FROM_LIST,
    {"response": "a", "groundTruth": ["a", 5]},
    "groundTruth[1]",
)
absent(
    "null_keyword",
    "A keyword in the record is null",
    "keyword-coverage",
    FROM_LIST,
    {"response": "a", "groundTruth": ["a", None]},
    "groundTruth[1]",
)
absent(
    "keywords_missing",
    "The record has no keywords",
    "keyword-coverage",
    FROM_LIST,
    {"response": "a"},
    "no keywords",
)
absent(
    "both_empty",
    "Response and reference are both empty",
    "lexical-similarity",
    {},
    {"response": "", "groundTruth": ""},
    "both empty",
)
absent(
    "no_reference",
    "The record has no reference to compare with",
    "lexical-similarity",
    {},
    {"response": "a"},
    "no text",
)
absent(
    "no_messages_to_count",
    "A budget for tool calls looks at a record without messages",
    "tool-call-budget",
    {"maxCalls": 0},
    {"response": {"calls": 7}},
    "no messages",
)
absent(
    "no_text_to_search",
    "A pattern that must not match looks at a response without text",
    "regex",
    {"pattern": "x", "mustMatch": False},
    {"response": {"x": 1}},
    "text",
)
absent(
    "no_state",
    "A record has no end state to compare",
    "state-match",
    {"expected": {"a": 1}},
    {"response": "a"},
    "no end state",
)
absent(
    "no_latency",
    "A time budget looks at a record without latency",
    "latency-budget",
    {"maxMs": 5},
    {"response": "a"},
    "no latency",
)
refused(
    "budget_as_text",
    "A budget is a number in quotes",
    "latency-budget",
    {"maxMs": "900"},
    "config.maxMs: expected a number; leave out the quotes",
)
refused(
    "truth_for_a_number",
    "A budget is `true`",
    "latency-budget",
    {"maxMs": True},
    "config.maxMs: expected a number",
)
refused(
    "word_for_a_truth_value",
    "A truth value is a word in quotes",
    "regex",
    {"pattern": "Hello", "mustMatch": "false"},
    "config.mustMatch: expected true or false; leave out the quotes",
)
refused(
    "number_for_a_truth_value",
    "A truth value is a number",
    "regex",
    {"pattern": "Hello", "mustMatch": 0},
    "config.mustMatch: expected true or false",
)
refused(
    "nested_number_as_text",
    "A number inside a list of rules is in quotes",
    "rule-based",
    rules({"type": "length", "min": "3"}),
    "config.rules[0].min: expected a whole number; leave out the quotes",
)
