"""Searches: a sample in, the strongest member of a weight family out. Shared by notions and auditors."""
