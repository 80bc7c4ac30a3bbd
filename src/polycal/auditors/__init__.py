"""Auditors: algorithms that look for a witness. One file per search."""
