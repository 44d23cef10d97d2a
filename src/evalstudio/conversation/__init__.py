"""Conversations: a simulated user, an agent, and what the evaluators make of it, turn by turn."""
