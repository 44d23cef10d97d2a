"""Speed as ratios against raw floors, measured inside one run."""
