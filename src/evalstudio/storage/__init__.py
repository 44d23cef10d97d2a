"""Keeping everything: SQLite by default, PostgreSQL for a team, JSON lines for recorded results."""
