"""Evaluators: the contract, the built-in ones, running them, and what their results come to."""
