"""Calibrators: maps from predictions to better predictions, one file per method."""
