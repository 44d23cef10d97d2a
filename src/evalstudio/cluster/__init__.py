"""Work on a Ray cluster, of one node or many. Nothing here is imported unless it is asked for."""
