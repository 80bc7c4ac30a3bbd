"""The facade: measure, search, prove, and put the result into one object."""
