"""Conversations that exist already, whoever recorded them, read into the shape a live run has."""
