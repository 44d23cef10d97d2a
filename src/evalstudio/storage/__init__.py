"""Storage: where definitions, runs and results are kept."""
