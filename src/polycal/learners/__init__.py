"""Agnostic learners on the simplex, and the reduction from learning to auditing."""
