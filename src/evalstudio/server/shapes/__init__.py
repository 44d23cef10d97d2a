"""Shapes the API adds to the entities: what it is asked, and what it answers, beside them."""
