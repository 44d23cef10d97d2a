"""The built-in evaluators, one module per type. ``BUILTIN_MODULES`` is the list the registry loads."""

from __future__ import annotations

BUILTIN_MODULES = (
    "llm_judge",
    "criteria_judge",
    "regex",
    "json_schema",
    "latency_budget",
    "token_budget",
    "tool_call_budget",
    "tool_usage",
    "state_match",
    "rule_based",
    "lexical_similarity",
    "keyword_coverage",
    "nlp_accuracy",
    "sentiment",
    "toxicity",
    "tool_call_count",
    "token_usage",
    "response_length",
    "latency",
    "human",
)
