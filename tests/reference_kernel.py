"""Slow, obvious versions of everything made of kernels, learners and monomials."""

from itertools import combinations_with_replacement, product

import numpy as np


def multinomial_features(v, degree):
    """psi(v): one coordinate per tuple of at most ``degree`` classes, the product of their probabilities."""
    return np.array(
        [
            np.prod([v[c] for c in t])
            for length in range(degree + 1)
            for t in product(range(len(v)), repeat=length)
        ]
    )


def multinomial(v, u, degree):
    """sum_i (v . u)^i, term by term."""
    return sum(float(np.dot(v, u)) ** i for i in range(degree + 1))


def laplace(v, u, scale):
    """exp(-||v - u||_2 / scale)."""
    return float(np.exp(-np.sqrt(sum((a - b) ** 2 for a, b in zip(v, u, strict=True))) / scale))


def gaussian(v, u, scale):
    """exp(-||v - u||_2^2 / (2 scale^2))."""
    return float(np.exp(-sum((a - b) ** 2 for a, b in zip(v, u, strict=True)) / (2 * scale**2)))


def residual(labels, proba, weight=None):
    """weight_i (y_i - v_i)."""
    weight = np.ones(len(labels)) if weight is None else np.asarray(weight, float)
    return weight[:, None] * (np.eye(proba.shape[1])[labels] - proba)


def algorithm_two(labels, proba, ker, s, weight=None):
    """The paper's Algorithm 2 by loops: (lambda of each class, the function v -> w(v))."""
    z = residual(labels, proba, weight)
    n, k = z.shape
    lam = np.zeros(k)
    for c in range(k):
        square = sum(z[i, c] * z[j, c] * ker(proba[i], proba[j]) for i in range(n) for j in range(n))
        largest = s**2 * sum(abs(z[i, c]) for i in range(n)) ** 2
        lam[c] = np.sqrt(square) if square > 1e-8 * largest else 0.0

    def witness(v):
        return np.array(
            [
                sum(z[i, c] * ker(proba[i], v) for i in range(n)) / (lam[c] * s) if lam[c] > 0 else 0.0
                for c in range(k)
            ]
        )

    return lam, witness


def squared_kernel_error(labels, proba, ker, weight=None, *, unbiased=True):
    """The mean of ker(v_i, v_j) <z_i, z_j> over pairs (i != j when unbiased)."""
    weight = np.ones(len(labels)) if weight is None else np.asarray(weight, float)
    z = residual(labels, proba)
    total = mass = 0.0
    for i, j in product(range(len(labels)), repeat=2):
        if i != j or not unbiased:
            total += weight[i] * weight[j] * ker(proba[i], proba[j]) * float(np.dot(z[i], z[j]))
            mass += weight[i] * weight[j]
    return total / mass


def low_degree_error(labels, proba, degree, weight=None):
    """sum_l max over monomials of |E z_l v^e|, by trying all of them."""
    weight = np.ones(len(labels)) if weight is None else np.asarray(weight, float)
    z = residual(labels, proba, weight) / weight.sum()
    total = 0.0
    for c in range(proba.shape[1]):
        total += max(
            abs(float(np.sum(z[:, c] * np.prod(proba[:, list(t)], axis=1))))
            for length in range(degree + 1)
            for t in combinations_with_replacement(range(proba.shape[1]), length)
        )
    return total


def population_correlation(witness, support, mass, truth):
    """E <y - v, w(v)> for predictions on a finite support whose labels have the given true probabilities."""
    return float(np.sum(mass[:, None] * (truth - support) * witness(support)))
