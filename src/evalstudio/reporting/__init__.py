"""Reporting: honest numbers about runs."""
