"""Reporting: every number about runs and records, with what it rests on."""
