"""Passes over lists of classes: CSR arrays, where every class that a row does not list has the row's background."""

import numpy as np

from polycal._compiled import compiled
from polycal._compiled.subset import _read


@compiled
def member_sums(indptr, indices, values, background, member):
    """The sum over the member classes of each row, of its entries and of its background elsewhere."""
    n = indptr.size - 1
    n_members = member.sum()
    total = np.empty(n)
    for i in range(n):
        listed = 0.0
        n_listed = 0
        for e in range(indptr[i], indptr[i + 1]):
            if member[indices[e]]:
                listed += values[e]
                n_listed += 1
        total[i] = listed + background[i] * (n_members - n_listed)
    return total


@compiled
def list_flip_gains(
    indptr, indices, proba, residual, share, rest, mass, shift, member, values, current, table
):
    """For each class, the change of ``sum_i <1_T, z_i> phi(<1_T, v_i>)`` when it enters or leaves T, phi kept.

    A class that a row does not list changes it by the same amount as any other such class, up to the class's shift
    t_j (z_ij holds ``mass_i t_j``), in which the change is linear. So each row is counted once for all classes in
    either direction, and put right at its entries.
    """
    n, k = indptr.size - 1, member.size
    gain, tilt = np.zeros(k), np.zeros(k)
    all_gain, all_tilt = np.zeros(2), np.zeros(2)
    usual, usual_phi = np.empty(2), np.empty(2)
    for i in range(n):
        u, r = values[i], current[i]
        before = r * _read(table, u)
        for side in range(2):
            sign = 1.0 - 2.0 * side
            usual_phi[side] = _read(table, u + sign * share[i])
            usual[side] = (r + sign * rest[i]) * usual_phi[side] - before
            all_gain[side] += usual[side]
            all_tilt[side] += mass[i] * usual_phi[side]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            side = 1 if member[j] else 0
            sign = 1.0 - 2.0 * side
            phi = _read(table, u + sign * proba[e])
            gain[j] += (r + sign * residual[e]) * phi - before - usual[side]
            tilt[j] += mass[i] * (phi - usual_phi[side])
    for j in range(k):
        side = 1 if member[j] else 0
        sign = 1.0 - 2.0 * side
        gain[j] += all_gain[side] + sign * shift[j] * (tilt[j] + all_tilt[side])
    return gain


@compiled
def add_outer(matrix, indptr, indices, values, likeness):
    """Add ``sum_i values_ij likeness_i`` to row j of the matrix."""
    n_rows, n_landmarks = matrix.shape
    if likeness.shape[1] != n_landmarks or (indices.size > 0 and indices.max() >= n_rows):
        raise ValueError("the matrix does not fit the lists and landmarks")
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            for d in range(n_landmarks):
                matrix[indices[e], d] += values[e] * likeness[i, d]


@compiled
def entry_products(indptr, indices, likeness, coefficients):
    """``<likeness_i, coefficients_j>`` for every entry (i, j)."""
    n_rows, n_landmarks = coefficients.shape
    if likeness.shape[1] != n_landmarks or (indices.size > 0 and indices.max() >= n_rows):
        raise ValueError("the coefficients do not fit the lists and landmarks")
    out = np.zeros(indices.size)
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            total = 0.0
            for d in range(n_landmarks):
                total += likeness[i, d] * coefficients[indices[e], d]
            out[e] = total
    return out
