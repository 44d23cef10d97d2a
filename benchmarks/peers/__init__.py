"""``make bench-peers``: the same work by us, by others and by plain code, in one run."""
