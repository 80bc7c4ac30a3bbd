"""Kernels on the simplex, their blocked products, and the degrees the theory asks for."""
