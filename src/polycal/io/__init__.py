"""Predictions and groups of classes on disk: read with suspicion, written in one piece."""

from polycal.io.groups import read_groups
from polycal.io.predictions import read_predictions, read_probabilities, write_predictions

__all__ = ["read_groups", "read_predictions", "read_probabilities", "write_predictions"]
