"""Slow and obvious: every slice by its own mask, every question by itself."""

import numpy as np


def rows_of(table, conditions):
    """Which rows of a mapping of columns fulfil conditions, one row at a time."""
    n = len(next(iter(table.values())))
    return np.array([all(_holds(table[c.column][i], c) for c in conditions) for i in range(n)])


def _holds(value, condition):
    missing = value is None or value != value
    if condition.test == "missing":
        return missing
    if missing:
        return False
    if condition.test == "category":
        text = str(value).lower() if isinstance(value, bool | np.bool_) else str(value)
        return text == condition.category
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").astype(int) / 1e6
    return condition.low <= value < condition.high


def statistic(proba, labels, members, inside):
    """The smaller one of a slice's own chi-square and of that of its excess over all rows, for one set of classes."""
    u = proba[:, members].sum(axis=1)
    y = np.isin(labels, members)
    variance = u * (1 - u)
    tilt = u - (variance @ u) / variance.sum()
    own = other = 0.0
    for weight in (np.ones(u.size), tilt):
        gains = (y - u) * weight
        seen = [
            max(v @ w, s @ w)
            for v, s in [(variance * weight**2, gains**2)]
            for w in (inside, np.ones(u.size))
        ]
        part, whole = gains[inside].sum(), gains.sum()
        share = min(seen[0] / seen[1], 1.0)
        own += part**2 / seen[0]
        excess = part - share * whole
        if excess * part > 0:
            other += excess**2 / (seen[0] * (1 - share))
    return min(own, other)


def e_value(gains, usual, stake):
    """The product form of the evidence bounds its exponential form from above, row by row."""
    shifted = (gains - usual) / (1 + usual)
    return float(np.prod(1 + stake * shifted))


def boosted(step, rows):
    """A step of trees, walked node by node."""
    out = []
    for row in rows:
        proba = row[None, : step.n_classes]
        for inner in step.branches[0]:
            proba = inner(proba)
        scores = np.log(np.maximum(proba[0], 2.220446049250313e-16))
        inputs = [*row[step.n_classes :], *np.maximum(scores, -12)[step.seen]]
        shift, stretch = np.zeros(step.n_classes), 0.0
        for t in range(step.feature.shape[0]):
            leaf = step.values[t, _leaf(step, t, inputs)]
            shift[step.shifted] += leaf[:-1]
            stretch += leaf[-1]
        total = np.exp(scores + shift + stretch * np.maximum(scores, -12))
        out.append(total / total.sum())
    return np.array(out)


def _leaf(step, t, inputs):
    node, n_nodes = 0, step.feature.shape[1]
    while node < n_nodes:
        f = step.feature[t, node]
        if f < 0:
            left = True
        elif np.isnan(inputs[f]):
            left = step.missing_left[t, node]
        elif step.equal[t, node]:
            left = inputs[f] == step.threshold[t, node]
        else:
            left = inputs[f] < step.threshold[t, node]
        node = 2 * node + (1 if left else 2)
    return node - n_nodes
