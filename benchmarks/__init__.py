"""Polycal beside its peers, and its hot paths beside their floors: ``python -m benchmarks --help``."""
