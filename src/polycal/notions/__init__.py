"""Notions of calibration: what being calibrated means. One file each."""
