"""A package, so that its modules may share names with their neighbours above."""
