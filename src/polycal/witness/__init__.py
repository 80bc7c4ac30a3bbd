"""Witnesses: functions from predictions to [-1, 1]^k that correlate with the residual. One file per family."""
