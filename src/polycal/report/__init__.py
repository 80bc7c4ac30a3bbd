"""Rendering: plain dictionaries of results in, text for people out. Nothing is computed here."""
