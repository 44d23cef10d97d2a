"""What is asked of all: how many records, judge calls and conversations, and their texts."""

from __future__ import annotations

RECORDS = 10_000
CALLS = 300
JUDGE_AT_ONCE = 8
TALKS = 500
AT_ONCE = 50
QUESTIONS = ["A table for two, please.", "At eight.", "Yes, book it."]
PROMPT = "Was the flight booked? " + "The agent said so. " * 50
