"""Confidence bounds, redrawn labels and certificates: what the data prove."""
