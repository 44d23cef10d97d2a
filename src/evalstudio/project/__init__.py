"""A project: its config file, its definitions as people write them, and the entities that are kept."""
