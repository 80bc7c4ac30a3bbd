"""Passes of the additive states: predictions added to tables of bins and of cells."""

import numpy as np

from polycal._compiled import compiled


@compiled
def _bin(p, edges):
    """The bin of equal width that holds p; a bin holds its upper edge. No branches: they would be mispredicted."""
    n_bins = edges.size - 1
    b = min(int(p * n_bins), n_bins - 1)
    # The product may round across an edge.
    b -= b > 0 and p <= edges[b]
    b += p > edges[b + 1]
    return b


@compiled
def add_to_bins(predicted, answer, weight, edges, table):
    """Add an (n, q) block of predictions to a (q, bins, 4) table: rows, weight, weighted prediction and "yes".

    The answer to question j is "yes" on the rows with ``answer == j``.
    """
    n, n_questions = predicted.shape
    if table.shape != (n_questions, edges.size - 1, 4):
        raise ValueError("the table does not fit the questions and bins")
    for i in range(n):
        w = weight[i]
        if w == 0.0:
            continue
        for j in range(n_questions):
            p = min(np.float64(predicted[i, j]), 1.0)
            b = _bin(p, edges)
            table[j, b, 0] += 1.0
            table[j, b, 1] += w
            table[j, b, 2] += w * p
        yes = int(answer[i])
        if yes < n_questions:
            b = _bin(min(np.float64(predicted[i, yes]), 1.0), edges)
            table[yes, b, 3] += w


@compiled
def add_to_cells(predicted, answer, weight, cells, totals):
    """Add an (n, q) block of predictions to (q, m, 2) cells and (q, 4) totals.

    A cell gets the weighted residual and its variance if the predictions are right. The totals are the weighted
    prediction, the weighted "yes", ``weight |residual| |prediction - middle of its cell|``, and the square of the
    weighted residual; of files of earlier versions, without the last.
    """
    n, n_questions = predicted.shape
    m = cells.shape[1]
    if m == 0 or cells.shape != (n_questions, m, 2) or totals.shape[0] != n_questions or totals.shape[1] < 3:
        raise ValueError("the cells do not fit the questions")
    for i in range(n):
        w = weight[i]
        if w == 0.0:
            continue
        for j in range(n_questions):
            p = min(np.float64(predicted[i, j]), 1.0)
            c = min(int(p * m), m - 1)
            hit = 1.0 if answer[i] == j else 0.0
            residual = hit - p
            cells[j, c, 0] += w * residual
            cells[j, c, 1] += w * w * p * (1.0 - p)
            totals[j, 0] += w * p
            totals[j, 1] += w * hit
            totals[j, 2] += w * abs(residual) * abs(p - (c + 0.5) / m)
            if totals.shape[1] > 3:
                totals[j, 3] += (w * residual) ** 2
