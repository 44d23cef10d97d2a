"""The built-in evaluators: every type with its module, imported at first use, in the order shown."""

from __future__ import annotations

BUILTIN_TYPES = {
    "llm-judge": "llm_judge",
    "criteria-judge": "criteria_judge",
    "regex": "regex",
    "json-schema": "json_schema",
    "tool-usage": "tool_usage",
    "state-match": "state_match",
    "rule-based": "rule_based",
    "lexical-similarity": "lexical_similarity",
    "keyword-coverage": "keyword_coverage",
    "nlp-accuracy": "nlp_accuracy",
    "sentiment": "sentiment",
    "toxicity": "toxicity",
    "secret-leak": "secret_leak",
    "latency": "measurements",
    "first-token": "measurements",
    "latency-budget": "measurements",
    "token-usage": "measurements",
    "token-budget": "measurements",
    "tool-call-count": "measurements",
    "tool-call-budget": "measurements",
    "response-length": "measurements",
    "human": "human",
}
# Those that run on every scenario without being listed.
AUTOMATIC = frozenset({"latency", "token-usage"})
