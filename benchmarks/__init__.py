"""Speed as ratios to known floors, measured in one run: ``python -m benchmarks``."""
