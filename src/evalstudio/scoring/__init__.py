"""Recorded scoring: what an agent already said, judged by criteria and evaluators."""
