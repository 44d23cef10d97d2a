"""A project: its config file, and later the entities it holds."""
