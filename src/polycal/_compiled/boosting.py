"""Small trees: sums over the rows of their nodes, and the leaf that each row falls into."""

import math

import numpy as np

from polycal._compiled import compiled


@compiled
def node_sums(codes, node, sums, n_nodes, n_bins):
    """Sums of the numbers of each row over nodes, columns and bins: shape (n_nodes, n_columns, n_bins, n_numbers)."""
    n, d = codes.shape
    m = sums.shape[1]
    out = np.zeros((n_nodes, d, n_bins, m))
    for i in range(n):
        own = out[node[i]]
        for f in range(d):
            cell = own[f, codes[i, f]]
            for j in range(m):
                cell[j] += sums[i, j]
    return out


@compiled
def descend(codes, node, feature, split, equal, missing_left):
    """The node of each row one level further down; a node that is not split hands all its rows to the left."""
    out = np.empty_like(node)
    for i in range(node.size):
        at = node[i]
        f = feature[at]
        left = True
        if f >= 0:
            code = codes[i, f]
            if code == 0:
                left = missing_left[at]
            elif equal[at]:
                left = code == split[at]
            else:
                left = code <= split[at]
        out[i] = 2 * at + (0 if left else 1)
    return out


@compiled
def tree_sums(rows, feature, threshold, equal, missing_left, values):
    """The sum of the values of the leaves that each row falls into, over all trees."""
    n_trees, n_leaves, m = values.shape
    out = np.zeros((rows.shape[0], m))
    for i in range(rows.shape[0]):
        for t in range(n_trees):
            at = 0
            place = 0
            while place < n_leaves - 1:
                f = feature[t, place]
                left = True
                if f >= 0:
                    x = rows[i, f]
                    if math.isnan(x):
                        left = missing_left[t, place]
                    elif equal[t, place]:
                        left = x == threshold[t, place]
                    else:
                        left = x < threshold[t, place]
                place = 2 * place + (1 if left else 2)
            at = place - (n_leaves - 1)
            for j in range(m):
                out[i, j] += values[t, at, j]
    return out
