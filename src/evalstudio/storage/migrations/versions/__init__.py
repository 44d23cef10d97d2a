"""The migrations, in the order of their numbers. Each imports ``operations`` as ``op``."""
