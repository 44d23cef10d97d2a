"""Projects to start from: ``demo`` shows a planted bug, ``starter`` is what ``evalstudio init`` writes."""
