"""The built-in evaluators. ``BUILTIN_MODULES`` is the list the registry loads, in the order shown."""

from __future__ import annotations

BUILTIN_MODULES = (
    "llm_judge",
    "criteria_judge",
    "regex",
    "json_schema",
    "tool_usage",
    "state_match",
    "rule_based",
    "lexical_similarity",
    "keyword_coverage",
    "nlp_accuracy",
    "sentiment",
    "toxicity",
    "secret_leak",
    "measurements",
    "human",
)
